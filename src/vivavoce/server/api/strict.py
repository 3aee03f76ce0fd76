"""Strict requests: JSON without NaN, duplicate keys, lone surrogates or endless nesting; no unknown parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from functools import cache, partial
from typing import Any, cast

from anyio import to_thread
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.errors import did_you_mean
from vivavoce.records.score import shorten
from vivavoce.server.access import reading_once
from vivavoce.server.api.answers import mistakes_in_line
from vivavoce.server.api.quick_check import QuickCheck
from vivavoce.server.turns import in_turn

LONGEST = 80
"""Characters of a name that an answer repeats."""

MAX_VALUES = 300_000
"""Values of the JSON of a request, at all levels: all of them are checked while others wait."""

_TOO_MANY = f"the body has more than {MAX_VALUES:,} values"
_TEXT = re.compile(rb'"(?:[^"\\]|\\.?)*+(?:"|\Z)', re.DOTALL)
"""A text of JSON, up to the end where it has none, so that no byte is looked at twice."""

SMALL_BODY_BYTES = 10_000
"""The length of a body that is read at once; a longer one is read in a thread while others are answered."""


class StrictRequest(Request):
    """A request whose body must be unambiguous JSON."""

    def __init__(self, request: Request, quick_check: Callable[[], QuickCheck | None]) -> None:
        super().__init__(request.scope, request.receive)
        self._quick_check = quick_check

    async def json(self) -> Any:
        """Return the body read.

        Raises:
            HTTPException: the body is not such JSON, or it is large and has a wrong value.
        """
        body = await self.body()
        return await to_thread.run_sync(self._read_large, body) if len(body) > SMALL_BODY_BYTES else _read(body)

    def _read_large(self, body: bytes) -> Any:
        """Read a body, and refuse it for its first wrong value: the framework makes an error of each of them."""
        value = _read(body)
        check = self._quick_check()
        if check is not None and (mistakes := check.mistakes(value)):
            raise HTTPException(422, mistakes_in_line((("body", *place), problem) for place, problem in mistakes))
        return value


def _read(body: bytes) -> Any:
    """Read a body, which is refused before its values are checked one by one if there are too many."""
    if (
        body.count(b",") > MAX_VALUES and _TEXT.sub(b"", body).count(b",") > MAX_VALUES
    ):  # each stands between two values
        raise HTTPException(422, _TOO_MANY)
    try:
        text = body.decode("utf-8")
        value = parse(text)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise HTTPException(422, "the body has an unpaired surrogate, which is not a character") from error
    except (BrokenJson, UnicodeDecodeError) as error:
        raise HTTPException(422, f"the body is not valid JSON: {error}") from error
    if len(body) > MAX_VALUES and _has_more_values(value, MAX_VALUES):
        raise HTTPException(422, _TOO_MANY)
    return value


def _has_more_values(value: Any, most: int) -> bool:
    """Return whether a JSON value has more values than `most`, itself and those at all levels."""
    left = [value]
    count = 0
    while left:
        count += 1
        if count + len(left) > most:
            return True
        inner = left.pop()
        if isinstance(inner, dict):
            left.extend(cast("dict[str, Any]", inner).values())
        elif isinstance(inner, list):
            left.extend(cast("list[Any]", inner))
    return False


class StrictRoute(APIRoute):
    """A route with strict requests; an unknown parameter is refused, not ignored."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the framework, called with a strict request."""
        handle = in_turn(self, reading_once(self, super().get_route_handler()))
        known = {
            name
            for query_param in self.dependant.query_params
            for name in _names(query_param.alias, query_param.field_info.annotation)
        }

        quick_check = cache(partial(_quick_check, self))

        async def strictly(request: Request) -> Response:
            for name in request.query_params:
                if name not in known:
                    hint = did_you_mean(name, known) or "; this route has none" * (not known)
                    raise HTTPException(422, f"query: no parameter '{shorten(name, LONGEST)}'{hint}")
            return await handle(StrictRequest(request, quick_check))

        return strictly


def _quick_check(route: APIRoute) -> QuickCheck | None:
    return None if route.body_field is None else QuickCheck(route.body_field.field_info)


def _names(alias: str, kind: object) -> list[str]:
    """Return the names of a parameter in an address: its own, or those of the fields of a model."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [field.alias or name for name, field in kind.model_fields.items()]
    return [alias]
