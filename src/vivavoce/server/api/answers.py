"""Answers of the API: strict JSON, and errors as `{"detail": …, "code": …}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from vivavoce.errors import NotFound
from vivavoce.records.score import shorten
from vivavoce.report.text import strict_json
from vivavoce.server.replies import Problem
from vivavoce.server.state import policy_of
from vivavoce.server.statuses import INVALID, answered, code_of

ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "Not found."},
    422: {"model": Problem, "description": "The request is invalid."},
    503: {"model": Problem, "description": "The store is not available."},
}
"""Error answers of every route."""


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as JSON."""
    return Response(json_text(value), status, headers, media_type="application/json")


def json_text(value: object) -> str:
    """Return a value as JSON; half a surrogate pair, which JSON cannot contain, is escaped."""
    try:
        return strict_json(value)
    except PydanticSerializationError:  # it is inside a record
        return strict_json(to_jsonable_python(value, inf_nan_mode="strings", serialize_unknown=True))


def refused(
    detail: str, status: int, headers: Mapping[str, str] | None = None, *, code: str | None = None, **fields: str
) -> Response:
    """Return an error; a program tests `code`, a person reads `detail`."""
    return answer({"detail": detail, "code": code or code_of(status), **fields}, status, headers)


def on_error(request: Request, error: Exception) -> Response:
    """Answer with the error; for a not-found error with the kind and name of the missing thing."""
    policy = policy_of(request)
    found = answered(error)
    fields = {"what": error.what, "name": error.name} if isinstance(error, NotFound) else {}
    headers = None if found.wait is None else {"retry-after": str(found.wait)}
    return refused(policy.shown(str(error)), found.status, headers, code=found.code, **fields)


def on_invalid(request: Request, error: Exception) -> Response:
    """Answer a malformed request with the place and the problem, but never with its content."""
    del request
    assert isinstance(error, RequestValidationError)
    return refused(mistakes_in_line((mistake["loc"], mistake["msg"]) for mistake in error.errors()), INVALID.status)


def mistakes_in_line(mistakes: Iterable[tuple[Iterable[int | str], str]]) -> str:
    """Return the places and the problems of the first ten mistakes of a request in one line, each cut if it is long."""
    return "; ".join(
        f"{shorten('.'.join(map(str, place)))}: {shorten(problem)}" for place, problem in islice(mistakes, 10)
    )
