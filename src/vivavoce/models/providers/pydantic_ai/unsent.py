"""What the library would send for a request, kept instead of sent."""

from __future__ import annotations

import json
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import httpx2

_NOTHING: dict[str, Any] = {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
"""An answer that ends the library's work; nobody reads it."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """The body of a request, and the optional features of the provider (`anthropic-beta`) that it needs."""

    body: dict[str, Any]
    features: tuple[str, ...]


KEPT: ContextVar[list[Unsent]] = ContextVar("requests that are kept")
"""Where the requests of the task go."""


class Keeping(httpx2.AsyncBaseTransport):
    """Keeps each request in `KEPT` and sends none."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Keep a request."""
        body = cast("dict[str, Any]", json.loads(await request.aread()))
        body.pop("stream", None)
        features = [one.strip() for one in request.headers.get("anthropic-beta", "").split(",")]
        KEPT.get().append(Unsent(body, tuple(one for one in features if one)))
        empty = {**_NOTHING, "id": "", "model": body.get("model"), "usage": {"input_tokens": 0, "output_tokens": 0}}
        return httpx2.Response(200, json=empty, request=request)
