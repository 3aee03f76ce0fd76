"""`TimedConnection`: a connection to the server on which a request must arrive in a limited time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST = 120.0
"""Seconds in which a request must have arrived, its body too; enough for the largest over a slow line."""

_TOO_SLOW = (
    f"HTTP/1.1 {HTTPStatus.REQUEST_TIMEOUT} {HTTPStatus.REQUEST_TIMEOUT.phrase}\r\n"
    "content-length: 0\r\nconnection: close\r\n\r\n"
).encode()


class TimedConnection(H11Protocol):
    """A connection that is closed when a request, or the first byte of one, does not arrive; uvicorn waits for ever.

    The time of a request begins with its first byte, that of the first one with the connection. How long an answer
    takes is not limited here.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and wait for its first request."""
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for the rest of the request where it is not whole."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on with what came in the meantime, which may be a part of another request."""
        super().on_response_complete()
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
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # nothing has been answered yet
            self.transport.write(_TOO_SLOW)
        self.transport.close()
