"""How the API answers: JSON that every reader takes, whatever strangers wrote, and errors as `{"detail": …}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from vivavoce.report.strict_json import strict_json
from vivavoce.server.replies import Problem

_MISSING = re.compile(
    r"^no (run|grading|suite|job)\b|^there (are no|is only)\b|^run \S+ has no sample|has no such trial"
)


ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "It is not there."},
    422: {"model": Problem, "description": "The request is wrong."},
    503: {"model": Problem, "description": "The store cannot be used now."},
}
"""What every route may answer besides."""


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as JSON."""
    return Response(json_text(value), status, headers, media_type="application/json")


def json_text(value: object) -> str:
    """Return a value as JSON; half a surrogate pair, which JSON cannot hold, stands escaped."""
    try:
        return strict_json(value)
    except PydanticSerializationError:  # it is inside a record
        return strict_json(to_jsonable_python(value, inf_nan_mode="strings", serialize_unknown=True))


def refused(detail: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error."""
    return answer({"detail": detail}, status, headers)


def on_usage(request: Request, error: Exception) -> Response:
    """Answer a request that is wrong with what is wrong; what it names and is not there is not found."""
    del request
    return refused(str(error), 404 if _MISSING.search(str(error)) else 422)


def on_store(request: Request, error: Exception) -> Response:
    """Answer where the store cannot be used."""
    del request
    return refused(str(error), 503, {"retry-after": "5"})


def on_invalid(request: Request, error: Exception) -> Response:
    """Answer a request that has not the form it should have: where, and what; never what it held."""
    del request
    assert isinstance(error, RequestValidationError)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:10]]
    return refused("; ".join(told), 422)
