"""`Body`: the bytes of an answer as they come, unpacked, and no more of them than allowed."""

from __future__ import annotations

import zlib

from vivavoce.wire.exchange import Broken

_EITHER = zlib.MAX_WBITS | 32
"""gzip or zlib, told apart by how they begin."""
PACKED = frozenset(("gzip", "x-gzip", "deflate"))


class Body:
    """Takes one body up to `size` bytes; `is_cut` is whether there would be more."""

    def __init__(self, size: int, encoding: str) -> None:
        if encoding not in PACKED and encoding not in ("", "identity"):
            raise Broken(f"its encoding '{encoding}' is not known", "format")
        self.is_cut = False
        self._size = size
        self._parts: list[bytes] = []
        self._length = 0
        self._unpacker = zlib.decompressobj(_EITHER) if encoding in PACKED else None

    def add(self, part: bytes) -> None:
        """Take a part as it came.

        Raises:
            Broken: it is not packed as the answer says.
        """
        if self._unpacker is not None:
            part = self._unpacked(part)
        self._parts.append(part)
        self._length += len(part)
        self.is_cut = self._length > self._size

    def whole(self) -> bytes:
        """Return all of it.

        Raises:
            Broken: its end is missing.
        """
        if self._parts and self._unpacker is not None and not self._unpacker.eof and not self.is_cut:
            raise Broken("the compressed answer is not whole", "answer")
        return b"".join(self._parts)

    def _unpacked(self, part: bytes) -> bytes:
        if not self._parts and part[0] != 0x1F and part[0] & 0x0F != zlib.DEFLATED:
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its head, as some servers send it
        assert self._unpacker is not None
        try:
            return self._unpacker.decompress(part, self._size + 1 - self._length)
        except zlib.error as error:
            raise Broken(f"the compressed answer is damaged: {error}", "answer") from error
