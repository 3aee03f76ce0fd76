"""`Receiver`: takes traces and logs by OTLP over HTTP, and answers when they are on disk.

Source: the OTLP specification, OTLP/HTTP. A sender tries again after 429, 502, 503 and 504, and gives up after every
other answer that is not a success.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from vivavoce.errors import StoreError
from vivavoce.features.watch.intake import (
    ENCODINGS,
    JSON,
    MAX_BYTES,
    PROTOBUF,
    SIGNALS,
    Refused,
    Request,
    Signal,
    failure,
    success,
)
from vivavoce.features.watch.spool import RETRY_AFTER, Spool
from vivavoce.server.access import Access
from vivavoce.server.authenticator import Authenticator, bearer_in

MOST_AT_ONCE = 256 * 2**20
"""Bytes of requests that are in work at a time."""

_PATHS: dict[str, Signal] = {f"/v1/{signal}": signal for signal in SIGNALS}
_OTHER_HOST = (
    "this receiver does not answer to this host name; send to the address that it prints, or start it with "
    "VIVAVOCE_TOKEN to accept any name"
)
_OTHERS = "this address takes traces and logs, at /v1/traces and /v1/logs; set OTEL_METRICS_EXPORTER=none"


class Receiver:
    """An application of ASGI that keeps what it is sent in a spool.

    With an `authenticator` each request needs a token; else `access` says which hosts may be named, so that no page of
    another origin writes here.
    """

    def __init__(self, spool: Spool, access: Access, authenticator: Authenticator | None = None) -> None:
        self._spool, self._access, self._authenticator = spool, access, authenticator
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request."""
        headers = Headers(scope=scope)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        answered_in = PROTOBUF if kind == PROTOBUF else JSON
        more: dict[str, str] = {}
        try:
            status, body = 200, await self._take(scope, headers, kind, receive)
        except Refused as refused:
            status, body = refused.status, failure(refused, answered_in)
            more = {"retry-after": str(refused.retry_after)} if refused.retry_after else {}
            if status == 405:
                more = {"allow": "POST"}
            if status in (408, 413):  # what is left of the body is not read
                more |= {"connection": "close"}
        await _answer(send, status, body, {"content-type": answered_in, **more})

    async def _take(self, scope: Scope, headers: Headers, kind: str, receive: Receive) -> bytes:
        """Keep what a request holds and return the body of the answer.

        Raises:
            Refused: it is not taken.
        """
        signal = _PATHS.get(scope["path"])
        if signal is None:
            raise Refused(404, _OTHERS)
        if scope["method"] != "POST":
            raise Refused(405, "send the export with POST")
        await self._admit(scope, headers)
        if kind not in (JSON, PROTOBUF):
            raise Refused(415, f"the content type '{kind[:80]}' is not one of OTLP; send {PROTOBUF} or {JSON}")
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ENCODINGS:
            raise Refused(415, f"the content encoding '{encoding[:40]}' is not known; send gzip or none")
        size = 0
        try:
            chunks: list[bytes] = []
            async for chunk in _chunks(receive):
                size += len(chunk)
                self._bytes += len(chunk)
                self._check(size)
                chunks.append(chunk)
            request = Request(signal, b"".join(chunks), kind, encoding)
            delivery = await self._spool.put(request.read, time.time())
        except StoreError as error:
            raise Refused(503, f"export not saved: {error}", RETRY_AFTER) from error
        finally:
            self._bytes -= size
        return success(delivery, signal, kind)

    def _check(self, size: int) -> None:
        if size > MAX_BYTES:
            raise Refused(413, f"the body is larger than {MAX_BYTES // 2**20} MB; send smaller batches")
        if self._bytes > MOST_AT_ONCE:
            raise Refused(429, "too many requests at the same time; try again", 1)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        """Let a request in.

        Raises:
            Refused: it names another host, comes from a page, or lacks a token.
        """
        if self._authenticator is None:  # without a token, a page of another origin could write here under any name
            if (refusal := self._access.refused_host(headers)) is not None:
                status, why = refusal
                raise Refused(status, _OTHER_HOST if status == 421 else why)
            return
        secret = bearer_in(headers)
        user = await self._authenticator.user(secret, self._authenticator.asker(scope, headers)) if secret else None
        if user is None:
            raise Refused(401, "a token is required: set OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN")
        if not user.may("write"):
            raise Refused(403, user.lacking("write"))


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(408, "the connection was closed before the body was complete")
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
