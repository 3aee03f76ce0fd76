"""What requests in progress may hold in the memory of a server: their number, their bodies, and their answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vivavoce.server.access import SAFE_METHODS
from vivavoce.server.connection import max_connections
from vivavoce.server.fair_share import FairShare
from vivavoce.server.refusals import refusal
from vivavoce.server.users import User

MAX_REQUESTS_OF_USER = 500
"""Requests of one user in progress at a time, those that wait included; at most half of all connections."""

MAX_BYTES = 256_000_000
"""Bytes of large bodies of all requests in progress; as many of large answers that are not sent yet."""

MAX_BYTES_OF_USER = 64_000_000
"""Bytes of the same for one user, who may always have one that is larger."""

SMALL_BODY_BYTES = 2**16
"""The length of a body that is not counted."""

PART_BYTES = 2**18
"""Bytes of an answer that are sent at a time; a shorter answer is not counted."""

_UNTIL_SENT = "until_sent"
_RETRY = {"retry-after": "2"}


def until_sent(request: Request) -> AsyncExitStack:
    """Return what a request holds until its answer is sent or its client is gone."""
    return getattr(request.state, _UNTIL_SENT)


class TrafficMiddleware:
    """Lets requests of a user wait, or refuses them, where together they would hold too much at a time.

    A large body is read once there is room for it. A large answer is sent in parts. Where there is no room for one,
    that of a request that changes nothing is dropped and the request is refused; that of another one waits.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._requests: Counter[str] = Counter()
        self._bodies = FairShare(MAX_BYTES, MAX_BYTES_OF_USER)
        self._answers = FairShare(MAX_BYTES, MAX_BYTES_OF_USER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        user: User = scope["state"]["user"]
        limit = max_requests_of_user()
        if self._requests[user.key] >= limit:
            why = f"{user.name} has {limit} requests in progress; try again when one of them has ended"
            await refusal(scope, 429, why, {**_RETRY, "connection": "close"})(scope, receive, send)
            return
        self._requests[user.key] += 1
        try:
            async with AsyncExitStack() as stack:
                scope["state"][_UNTIL_SENT] = stack
                answer = _Answer(scope, receive, send, self._answers)
                await self.app(scope, self._when_there_is_room(scope, receive, stack), answer.send)
        finally:
            self._requests[user.key] -= 1
            if not self._requests[user.key]:
                del self._requests[user.key]

    def _when_there_is_room(self, scope: Scope, receive: Receive, stack: AsyncExitStack) -> Receive:
        """Return how the body of a request is received: a large one waits until there is room for all of it."""
        size = int(Headers(scope=scope).get("content-length", "0"))
        if size <= SMALL_BODY_BYTES:
            return receive
        has_room = False

        async def receive_later() -> Message:
            nonlocal has_room
            if not has_room:
                has_room = True
                await stack.enter_async_context(self._bodies.take(scope["state"]["user"], size))
            return await receive()

        return receive_later


class _Answer:
    """The answer to one request, which is counted and sent in parts where it is large."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, unsent: FairShare) -> None:
        self._scope, self._receive, self._send, self._unsent = scope, receive, send, unsent
        self._user: User = scope["state"]["user"]
        self._start: Message | None = None
        self._is_refused = False

    async def send(self, message: Message) -> None:
        """Send a message of the answer; the head of one that may be large waits for its first bytes."""
        if self._is_refused:
            return
        if message["type"] == "http.response.start" and _declared_size(message) > PART_BYTES:
            self._start = message
            return
        body: bytes = message.get("body", b"")
        if len(body) <= PART_BYTES:
            await self._begin()
            await self._send(message)
        elif self._has_no_room(len(body)):
            self._is_refused = True
            why = "too many large answers are not read yet; try again once they are"
            await refusal(self._scope, 429, why, _RETRY)(self._scope, self._receive, self._send)
        else:
            async with self._unsent.take(self._user, len(body)):
                await self._begin()
                await self._send_parts(body, more=message.get("more_body", False))

    def _has_no_room(self, size: int) -> bool:
        """Return whether the request is refused: nothing of its answer is sent, and it may be repeated."""
        may_repeat = self._start is not None and self._scope["method"] in SAFE_METHODS
        return may_repeat and not self._unsent.is_free(self._user, size)

    async def _begin(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)

    async def _send_parts(self, body: bytes, *, more: bool) -> None:
        view = memoryview(body)
        for begin in range(0, len(body), PART_BYTES):
            part = bytes(view[begin : begin + PART_BYTES])
            more_body = more or begin + PART_BYTES < len(body)
            await self._send({"type": "http.response.body", "body": part, "more_body": more_body})
            await asyncio.sleep(0)  # to a client that reads quickly it is sent at once, and others wait


def max_requests_of_user() -> int:
    """Return how many requests of one user may be in progress at a time."""
    return max(1, min(MAX_REQUESTS_OF_USER, max_connections() // 2))


def _declared_size(start: Message) -> int:
    length = Headers(raw=start.get("headers", [])).get("content-length", "0")
    return int(length) if length.isdecimal() else 0
