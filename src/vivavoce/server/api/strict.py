"""Requests read strictly: no NaN, no key twice, no half characters, nothing nested without end."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from vivavoce.samples.strict_json import BrokenJson, parse


class StrictRequest(Request):
    """A request whose body is JSON that says one thing only."""

    async def json(self) -> Any:
        """Return the body read.

        Raises:
            HTTPException: it is no such JSON.
        """
        try:
            text = (await self.body()).decode("utf-8")
            value = parse(text)
            if "\\ud" in text.lower():
                json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise HTTPException(422, "the body holds half a surrogate pair, which is no character") from error
        except (BrokenJson, UnicodeDecodeError) as error:
            raise HTTPException(422, f"the body is not JSON as it should be: {error}") from error
        return value


class StrictRoute(APIRoute):
    """A route whose requests are read so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the framework, given such a request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
