"""`TextStream`: text that a thread writes, as chunks that an event loop sends while it is written."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import Self

CHUNK_CHARS = 2**18
"""Characters that are sent at a time."""
FLUSH_SECONDS = 0.5
"""Seconds after which fewer are sent, so that no proxy takes a slow answer for a dead one."""
MAX_CHUNKS = 4
"""Chunks that wait to be sent; the writer waits for the reader then."""
_LOOK_SECONDS = 0.5


class Abandoned(Exception):
    """Nobody reads any more, so the writer stops."""


class TextStream(io.TextIOBase):
    """A stream of text for the thread that `write` runs in.

    Use it in a running event loop: `start` begins to write, and `chunks` yields what was written, in UTF-8. An error of
    the writer is raised there.
    """

    def __init__(self, write: Callable[[Self], None]) -> None:
        super().__init__()
        self._write_all = write
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_CHUNKS)
        self._is_abandoned = threading.Event()
        self._parts: list[str] = []
        self._size = 0
        self._sent_at = float("-inf")

    def start(self) -> None:
        """Begin to write."""
        threading.Thread(target=self._run, name="vivavoce-export", daemon=True).start()

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield what is written until the end; the writer stops if this is closed before."""
        try:
            while (item := await self._queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                self._room.release()
                yield item
        finally:
            self._is_abandoned.set()

    def writable(self) -> bool:
        """Return that text can be written."""
        return True

    def write(self, text: str, /) -> int:
        """Write a text; this waits for the reader if much is unread.

        Raises:
            Abandoned: nobody reads any more.
        """
        self._parts.append(text)
        self._size += len(text)
        if self._size >= CHUNK_CHARS or time.monotonic() - self._sent_at > FLUSH_SECONDS:
            self._send()
        return len(text)

    def _run(self) -> None:
        try:
            self._write_all(self)
            self._send()
            self._put(None)
        except Abandoned:
            pass
        except BaseException as error:  # the reader raises it
            self._put(error)

    def _send(self) -> None:
        if not self._size:
            return
        text = "".join(self._parts)
        self._parts, self._size, self._sent_at = [], 0, time.monotonic()
        for begin in range(0, len(text), CHUNK_CHARS):
            self._wait_for_room()
            self._put(text[begin : begin + CHUNK_CHARS].encode())

    def _wait_for_room(self) -> None:
        while not self._room.acquire(timeout=_LOOK_SECONDS):
            if self._is_abandoned.is_set():
                raise Abandoned
        if self._is_abandoned.is_set():
            raise Abandoned

    def _put(self, item: bytes | BaseException | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
