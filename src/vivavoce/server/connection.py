"""`TimedConnection`: one of a limited number of connections, on which a request must arrive in a limited time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from http import HTTPStatus
from itertools import count
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from vivavoce.pacing.file_handles import handle_limit

LONGEST = 120.0
"""Seconds in which a request must have arrived, its body too; enough for the largest over a slow line."""

MAX_CONNECTIONS = 1_000
"""Connections of a process at a time; fewer where it may have fewer files open."""

BACKLOG = 128
"""Connections that wait to be accepted, and that the event loop accepts at once."""

LOG_INTERVAL_SECONDS = 1.0
"""Seconds between two lines of the log about connections that cannot be accepted."""

_MOMENTS = count()
"""Numbers in the order in which connections become idle: the time of an event loop may be the same for several."""
_LOGGER = logging.getLogger("uvicorn.error")


def _closing(status: HTTPStatus) -> bytes:
    head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    return head.encode()


def server_config(app: Any, **options: Any) -> uvicorn.Config:
    """Return how each of our servers takes connections; `options` are further ones of uvicorn."""
    return uvicorn.Config(
        app,
        http=TimedConnection,
        backlog=BACKLOG,
        server_header=False,
        proxy_headers=False,
        ws="none",
        **options,
    )


def max_connections() -> int:
    """Return how many connections this process may have at a time: half of its files are for other uses."""
    handles = handle_limit()
    return MAX_CONNECTIONS if handles is None else max(1, min(MAX_CONNECTIONS, handles // 2))


class AcceptFailures:
    """A handler of an event loop that logs connections that cannot be accepted in one line a second.

    Without it the event loop writes a traceback for each try, of which there are thousands a second.
    """

    def __init__(self) -> None:
        self._count = 0
        self._next_line = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Log a failure to accept, and leave all others to the event loop."""
        if "socket.accept()" not in str(context.get("message")):
            loop.default_exception_handler(dict(context))
            return
        self._count += 1
        now = time.monotonic()
        if now >= self._next_line:
            self._next_line = now + LOG_INTERVAL_SECONDS
            _LOGGER.error("cannot accept connections: %s (%d failures)", context.get("exception"), self._count)
            self._count = 0


class TimedConnection(H11Protocol):
    """A connection that is closed when a request, or the first byte of one, does not arrive; uvicorn waits for ever.

    The time of a request begins with its first byte, that of the first one with the connection. How long an answer
    takes is not limited here. A connection beyond the limit takes the place of the one that has waited longest without
    a request; where each has one, it is answered with 503.
    """

    _deadline: asyncio.TimerHandle | None = None
    _became_idle = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and wait for its first request."""
        super().connection_made(transport)
        self._became_idle = next(_MOMENTS)
        if self._is_beyond_limit() and not self._take_place():
            self._close(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._begin()

    def _is_beyond_limit(self) -> bool:
        limit = max_connections()
        if len(self.connections) <= limit:
            return False
        return sum(not connection.transport.is_closing() for connection in self.connections) > limit

    def _take_place(self) -> bool:
        """Close the connection that has waited longest without a request; return whether there is one."""
        others = (other for other in self.connections if isinstance(other, TimedConnection) and other is not self)
        idle = min((other for other in others if other.is_idle), key=lambda other: other._became_idle, default=None)
        if idle is not None:
            idle._close(HTTPStatus.SERVICE_UNAVAILABLE)
        return idle is not None

    @property
    def is_idle(self) -> bool:
        """Whether no request has arrived that is not answered yet."""
        cycle: Any = self.cycle  # None before the first request
        return not self.transport.is_closing() and (cycle is None or cycle.response_complete)

    def _close(self, status: HTTPStatus) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # nothing has been answered yet
            self.transport.write(_closing(status))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for the rest of the request where it is not whole."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on with what came in the meantime, which may be a part of another request."""
        super().on_response_complete()
        self._became_idle = next(_MOMENTS)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._end()
        super().connection_lost(exc)

    def _watch(self) -> None:
        state = self.conn.their_state
        in_head = state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not (in_head or state is h11.SEND_BODY):
            self._end()
        elif self._deadline is None:
            self._begin()

    def _begin(self) -> None:
        self._deadline = self.loop.call_later(LONGEST, self._give_up)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._close(HTTPStatus.REQUEST_TIMEOUT)
