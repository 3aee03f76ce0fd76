"""The requests of one round to one model, on disk, in parts that a batch service takes at once."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from typing import BinaryIO, NamedTuple

from vivavoce.pacing.budget import Reservation


class Spooled(NamedTuple):
    """A request that is to be sent: the key of its reply, its bytes, and the room for it in the budget."""

    key: str
    size: int
    reservation: Reservation


class Part:
    """Requests that become one batch."""

    def __init__(self) -> None:
        self.requests: list[Spooled] = []
        self.size = 0
        self._file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the part is needed

    @property
    def keys(self) -> list[str]:
        """The keys of the requests, in their order."""
        return [one.key for one in self.requests]

    def add(self, key: str, line: bytes, reservation: Reservation) -> None:
        """Add a request."""
        self._file.write(line)
        self.requests.append(Spooled(key, len(line), reservation))
        self.size += len(line)

    def lines(self, keys: Collection[str]) -> Iterator[bytes]:
        """Yield the requests with these keys."""
        self._file.seek(0)
        for one in self.requests:
            line = self._file.read(one.size)
            if one.key in keys:
                yield line

    def close(self) -> None:
        """Forget the requests."""
        self._file.close()


class Spool:
    """Takes requests one by one; a part is full at `most_requests`, or at `most_bytes`."""

    def __init__(self, most_requests: int, most_bytes: int) -> None:
        self.keys: set[str] = set()
        self.parts: list[Part] = []
        self._most_requests, self._most_bytes = most_requests, most_bytes

    def add(self, key: str, line: bytes, reservation: Reservation) -> None:
        """Add a request."""
        part = self.parts[-1] if self.parts else None
        if part is None or len(part.requests) == self._most_requests or part.size + len(line) > self._most_bytes:
            self.parts.append(part := Part())
        part.add(key, line, reservation)
