"""`Connection`: HTTP/1.1 over one kept connection, a request and its answer at a time."""

from __future__ import annotations

import asyncio
from typing import cast

from vivavoce.wire.answer_reader import AnswerReader
from vivavoce.wire.exchange import Broken, Response


class Connection(asyncio.Protocol):
    """One connection, whose answers have at most `size` bytes once they are unpacked."""

    def __init__(self, size: int) -> None:
        self.kept_since: float | None = None
        """When it became free for another request, in the time of its loop; None where it cannot take one."""
        self._size = size
        self._transport: asyncio.Transport | None = None
        self._coming: asyncio.Future[Response] | None = None
        self._reader = AnswerReader(size)

    async def exchange(self, request: bytes, *, has_body: bool = True) -> Response:
        """Send a request and return the answer; `has_body` is False for one to HEAD.

        Raises:
            Broken: there is no whole answer; the connection cannot be used again, as after a cancellation.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise Broken("Server disconnected", "silence")
        self.kept_since = None
        self._reader = AnswerReader(self._size, has_body=has_body)
        coming = self._coming = asyncio.get_running_loop().create_future()
        transport.write(request)
        try:
            return await coming
        finally:
            self._coming = None
            if self.kept_since is None:
                self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection that was opened."""
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop are of no class of asyncio

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was coming: an answer without a length is whole now, any other broke."""
        self.kept_since = self._transport = None
        coming = self._coming
        if coming is None or coming.done():
            return
        if exc is not None:
            stage = "answer" if self._reader.has_begun else "silence"
            coming.set_exception(Broken(str(exc) or type(exc).__name__, stage))
            return
        try:
            self._reader.end()
            coming.set_result(self._reader.response)
        except Broken as broken:
            coming.set_exception(broken)

    def data_received(self, data: bytes) -> None:
        """Read on; bytes that nobody asked for close the connection."""
        coming, reader, transport = self._coming, self._reader, self._transport
        if coming is None or coming.done() or transport is None:
            self.kept_since = None
            self.abort()
            return
        try:
            reader.feed(data)
        except Broken as broken:
            coming.set_exception(broken)
            return
        if reader.is_whole:
            if reader.can_go_on and not transport.is_closing() and not transport.get_write_buffer_size():
                self.kept_since = asyncio.get_running_loop().time()
            coming.set_result(reader.response)
