"""What a server may do instead of answering properly: each is one way for a call to go wrong."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

Misbehaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""Handles a request in place of an answer."""

NO_HEADERS: Mapping[str, str] = {}


def status(code: int, body: str = "", headers: Mapping[str, str] = NO_HEADERS) -> Misbehaviour:
    """Answer with a status."""

    async def respond(request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body, headers=headers)

    return respond


def rate_limited(retry_after: float | str | None = None) -> Misbehaviour:
    """Answer 429, with a Retry-After of this many seconds or an HTTP date."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return status(429, '{"error": {"message": "rate limit reached"}}', headers)


def server_error() -> Misbehaviour:
    """Answer 500."""
    return status(500, '{"error": {"message": "the server broke"}}')


def body(text: str, content_type: str = "application/json") -> Misbehaviour:
    """Answer 200 with a body that may be anything."""

    async def respond(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return respond


def html() -> Misbehaviour:
    """Answer 200 with a web page, as login walls and proxies do."""
    return body("<!doctype html><title>Sign in</title><p>Please sign in.</p>", "text/html")


def broken_json() -> Misbehaviour:
    """Answer 200 with JSON that ends too early."""
    return body('{"choices": [{"message": {"role": "assistant", "content": "Hel')


def reset() -> Misbehaviour:
    """Reset the connection without a word."""

    async def respond(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is not None:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
        return web.Response()

    return respond


def huge(size: int = 100_000_000) -> Misbehaviour:
    """Answer 200 with this many bytes, sent in pieces until the client goes away."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        piece = b"blah " * 20_000
        try:
            for _ in range(0, size, len(piece)):
                await response.write(piece)
        except ConnectionError:
            return response
        await response.write_eof()
        return response

    return respond


def hang() -> Misbehaviour:
    """Take the request and never answer."""

    async def respond(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("this event is never set")

    return respond
