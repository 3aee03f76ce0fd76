"""`AnswerReader`: reads one answer of HTTP/1.1 from the bytes of a connection, and refuses what is doubtful.

Source: RFC 9112, and RFC 9110 for the headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from vivavoce.wire.body import Body
from vivavoce.wire.exchange import Broken, Response

HEAD = 65_536
"""Bytes that the head of an answer may have, and the lines between its chunks."""
OVERHEAD = 8
"""How many times the limit of a body may come over the wire: chunks have heads too."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: ([^\0\r\n]*))?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\0\r\n]*)?")
_BEGINNING = b"HTTP/1."
_NO_BODY = frozenset((101, 204, 304))


class AnswerReader:
    """Reads an answer whose body may have `size` bytes; `has_body` is False for one to HEAD."""

    def __init__(self, size: int, *, has_body: bool = True) -> None:
        self.response = Response()
        self.is_whole = False
        self.can_go_on = False
        """Whether the connection may be used again after this answer."""
        self._size = size
        self._has_body = has_body
        self._most = OVERHEAD * size + HEAD
        self._buffer = b""
        self._left = 0
        self._body: Body | None = None
        self._step: Callable[[], bool] = self._read_head

    @property
    def has_begun(self) -> bool:
        """Whether anything came."""
        return self._most != OVERHEAD * self._size + HEAD

    def feed(self, data: bytes) -> None:
        """Read on.

        Raises:
            Broken: it is not HTTP, or cannot be unpacked.
        """
        self._most -= len(data)
        self._buffer = self._buffer + data if self._buffer else data
        while not self.is_whole and self._buffer and self._step():
            pass
        if self._body is not None and not self.is_whole and self._most < 0:
            self._body.is_cut = True
            self._finish()
        if self._buffer and self.is_whole:
            self.can_go_on = False  # more than was asked for

    def end(self) -> None:
        """Take note that the connection ended.

        Raises:
            Broken: the answer is not whole.
        """
        if self._step != self._read_to_end:
            raise Broken("Server disconnected", "answer" if self.has_begun else "silence")
        self._finish()

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if not _BEGINNING.startswith(self._buffer[: len(_BEGINNING)]):
                raise Broken("it begins otherwise", "format")
            self._check_length()
            return False
        lines = self._buffer[:end].split(b"\r\n")
        self._buffer = self._buffer[end + 4 :]
        found = _STATUS.fullmatch(lines[0])
        if found is None or end > HEAD:
            raise Broken("its first line is not that of an answer", "format")
        status, headers = int(found[2]), _headers(lines[1:])
        if not 100 <= status < 200 or status == 101:
            self.response.status, self.response.headers = status, headers
            self.response.reason = (found[3] or b"").decode("utf-8", "replace")
            self._expect_body(found[1] == b"1")
        return True

    def _expect_body(self, is_new: bool) -> None:
        """Decide how the body comes (RFC 9112, 6.3), and whether another answer may follow (9.3)."""
        response = self.response
        codings, lengths = response.tokens("transfer-encoding"), set(response.tokens("content-length"))
        wishes = response.tokens("connection")
        self.can_go_on = "close" not in wishes and (is_new or "keep-alive" in wishes) and response.status != 101
        if not self._has_body or response.status in _NO_BODY:
            self.is_whole = True
            self.can_go_on &= self._has_body
            return
        self._body = Body(self._size, ", ".join(response.tokens("Content-Encoding")))
        if codings:
            if lengths or codings != ["chunked"]:
                raise Broken("where its body ends is not clear", "format")
            self._step = self._read_chunk_size
        elif lengths:
            length = lengths.pop()
            if lengths or not (length.isascii() and length.isdecimal()) or len(length) > 15:
                raise Broken("the length of its body is not clear", "format")
            self._left, self._step = int(length), self._read_length
            if not self._left:
                self._finish()
        else:
            self.can_go_on, self._step = False, self._read_to_end

    def _read_length(self) -> bool:
        self._take_body()
        if not self._left:
            self._finish()
        return False

    def _read_to_end(self) -> bool:
        self._left = len(self._buffer)
        self._take_body()
        return False

    def _read_chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise Broken("the size of a part is not clear", "format")
        self._left = int(found[1], 16)
        self._step = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self) -> bool:
        self._take_body()
        if self._left:
            return False
        self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self) -> bool:
        line = self._line()
        if line:
            raise Broken("a part is longer than it says", "format")
        self._step = self._read_chunk_end if line is None else self._read_chunk_size
        return line is not None

    def _read_trailer(self) -> bool:
        line = self._line()
        if line == b"":
            self._finish()
        return line is not None

    def _line(self) -> bytes | None:
        """Return the next line, None where it is not whole."""
        line, end, rest = self._buffer.partition(b"\r\n")
        if not end:
            self._check_length()
            return None
        self._buffer = rest
        return line

    def _check_length(self) -> None:
        if len(self._buffer) > HEAD:
            raise Broken(f"its head is larger than {HEAD:,} bytes", "format")

    def _take_body(self) -> None:
        assert self._body is not None
        part, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        self._left -= len(part)
        self._body.add(part)
        if self._body.is_cut:
            self._finish()

    def _finish(self) -> None:
        assert self._body is not None
        self.response.body = self._body.whole()
        self.response.cut = self._body.is_cut
        self.can_go_on &= not self._body.is_cut
        self.is_whole = True


def _headers(lines: list[bytes]) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise Broken("one of its headers is malformed", "format")
        name, value = found.groups()
        headers.setdefault(name.decode().lower(), []).append(value.rstrip(b" \t").decode("utf-8", "replace"))
    return headers
