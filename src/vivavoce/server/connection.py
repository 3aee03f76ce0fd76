"""`TimedConnection`: one of a limited number of connections, whose client must send requests and read answers."""

from __future__ import annotations

import asyncio
import fcntl
import ipaddress
import logging
import socket
import termios
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from struct import Struct
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from vivavoce.pacing.limits import handle_limit
from vivavoce.server.limits import asker_at

LONGEST = 120.0
"""Seconds in which a request must have arrived, its body too; enough for the largest over a slow line."""

MAX_CONNECTIONS = 1_000
"""Connections of a process at a time; fewer where it may have fewer files open."""

MAX_CONNECTIONS_OF_ADDRESS = 500
"""Connections of one address at a time; at most half of all. A proxy is one address, and loopback addresses are exempt:
a proxy on this machine is one of them, and so is everybody where a server is only for this machine."""

STALL_SECONDS = 30.0
"""Seconds without a byte after which a client that does not read its answer is disconnected. One that reads, however
slowly, is not."""

REPLACED_STALL_SECONDS = 2.0
"""Seconds without a byte after which another connection may take the place of such a client."""

CHECK_SECONDS = 1.0
"""Seconds between two looks at whether a client reads."""

BACKLOG = 128
"""Connections that wait to be accepted, and that the event loop accepts at once."""

LOG_INTERVAL_SECONDS = 1.0
"""Seconds between two lines of the log about connections that cannot be accepted."""

_MOMENTS = count()
"""Numbers in the order in which connections become idle: the time of an event loop may be the same for several."""
_LOGGER = logging.getLogger("uvicorn.error")
_NO_LINGERING = Struct("ii").pack(1, 0)
_QUEUE_LENGTH = Struct("i")
"""What the system writes for TIOCOUTQ: the bytes that the other end has not confirmed."""


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


def max_connections_of_address() -> int:
    """Return how many connections one address may have at a time."""
    return max(1, min(MAX_CONNECTIONS_OF_ADDRESS, max_connections() // 2))


def is_limited(address: str) -> bool:
    """Return whether the connections of an address are limited: those of this machine are not."""
    try:
        return not ipaddress.ip_address(address).is_loopback
    except ValueError:  # a socket of the file system has none
        return False


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


class _TimedFlow(FlowControl):
    """Counts the seconds in which the server itself reads nothing, such as while a request waits for its turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(transport)
        self._loop = loop
        self._paused_at = 0.0
        self._seconds = 0.0

    def pause_reading(self) -> None:
        """Read nothing more for now."""
        if not self.read_paused:
            self._paused_at = self._loop.time()
        super().pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._count()
        super().resume_reading()

    def take_paused_seconds(self) -> float:
        """Return the seconds since the last call in which nothing was read."""
        self._count()
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def _count(self) -> None:
        if self.read_paused:
            now = self._loop.time()
            self._seconds += now - self._paused_at
            self._paused_at = now


class TimedConnection(H11Protocol):
    """A connection that is closed when its client does not send a whole request, or reads nothing of an answer.

    The time of a request begins with its first byte, that of the first one with the connection; it stands still while
    the server does not read. An answer may take any time as long as the client reads it.

    A connection beyond a limit takes the place of the one that has waited longest without a request, or else of the one
    whose client has not read for the longest time; where there is neither, it is answered with 503.
    """

    _pauses: _TimedFlow
    _deadline: asyncio.TimerHandle | None = None
    _check: asyncio.TimerHandle | None = None
    _became_idle = 0
    _address = ""
    _unread_bytes = 0
    _progress_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and wait for its first request."""
        super().connection_made(transport)
        self.flow = self._pauses = _TimedFlow(transport, self.loop)
        self._address = asker_at(self.client[0]) if self.client else ""
        self._became_idle = next(_MOMENTS)
        self._progress_at = self.loop.time()
        self._check_later()
        crowd = self._crowd()
        if crowd and not self._take_place(crowd):
            self._close(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._begin()

    def _crowd(self) -> list[TimedConnection]:
        """Return the connections that exceed a limit by one, this one among them; none within the limits."""
        limit, limit_of_address = max_connections(), max_connections_of_address()
        if len(self.connections) <= min(limit, limit_of_address):
            return []
        connections = [other for other in self.connections if isinstance(other, TimedConnection) and not other.is_gone]
        if len(connections) > limit:
            return connections
        neighbors = [other for other in connections if other._address == self._address]
        return neighbors if len(neighbors) > limit_of_address and is_limited(self._address) else []

    def _take_place(self, crowd: Iterable[TimedConnection]) -> bool:
        """Close a connection that has no request, or whose client does not read; return whether there is one."""
        others = [other for other in crowd if other is not self]
        idle = min((other for other in others if other.is_idle), key=lambda other: other._became_idle, default=None)
        if idle is not None:
            idle._close(HTTPStatus.SERVICE_UNAVAILABLE)
            return True
        latest = self.loop.time() - REPLACED_STALL_SECONDS
        stalled = min(others, key=lambda other: other._progress_at, default=None)
        if stalled is None or stalled._progress_at > latest or not stalled._unread_bytes:
            return False
        stalled._abort()
        return True

    @property
    def is_gone(self) -> bool:
        """Whether it is closed and has nothing left to send."""
        return self.transport.is_closing() and not self.transport.get_write_buffer_size()

    @property
    def is_idle(self) -> bool:
        """Whether no request has arrived that is not answered yet."""
        cycle: Any = self.cycle  # None before the first request
        return not self.transport.is_closing() and (cycle is None or cycle.response_complete)

    def _close(self, status: HTTPStatus) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # nothing has been answered yet
            self.transport.write(_closing(status))
        if self.transport.get_write_buffer_size():  # to close waits for the client to read
            self._abort()
        else:
            self.transport.close()

    def _abort(self) -> None:
        """End the connection with all that is not sent, here and in the system."""
        with suppress(OSError):  # it is closed already
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on, and wait for the rest of the request where it is not whole."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Continue what came in the meantime, which may be a part of another request."""
        super().on_response_complete()
        self._became_idle = next(_MOMENTS)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._end()
        if self._check is not None:
            self._check.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        state = self.conn.their_state
        in_head = state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not (in_head or state is h11.SEND_BODY):
            self._end()
        elif self._deadline is None:
            self._begin()

    def _begin(self) -> None:
        self._pauses.take_paused_seconds()
        self._deadline = self.loop.call_later(LONGEST, self._give_up)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        paused = self._pauses.take_paused_seconds()
        if paused:  # it could not send all this time
            self._deadline = self.loop.call_later(paused, self._give_up)
        else:
            self._close(HTTPStatus.REQUEST_TIMEOUT)

    def _check_later(self) -> None:
        self._check = self.loop.call_later(CHECK_SECONDS, self._check_reading)

    def _check_reading(self) -> None:
        """Disconnect a client that has not read for too long; its memory and its place are free then."""
        now, unread = self.loop.time(), self._count_unread()
        if not unread or unread != self._unread_bytes:
            self._progress_at = now
        self._unread_bytes = unread
        if now - self._progress_at >= STALL_SECONDS:
            self._abort()
        else:
            self._check_later()

    def _count_unread(self) -> int:
        """Return the bytes that the client has not taken yet, in our memory and in that of the system.

        0 means that nothing waits in our memory. The system takes more from there only once it has much room, so what
        it has itself shows whether a slow client reads.
        """
        waiting = self.transport.get_write_buffer_size()
        if not waiting:
            return 0
        try:
            reply = fcntl.ioctl(
                self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(_QUEUE_LENGTH.size)
            )
        except OSError:  # the system does not tell
            return waiting
        return waiting + _QUEUE_LENGTH.unpack(reply)[0]
