"""A JSON document read piece by piece: the items of a list in it, one at a time, and the beginning of a long one."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO

from vivavoce.comparing.json_values import BLANK, BrokenJson, check_depth, decode_from, wrap_decode_error

_PIECE = 1 << 18
"""Bytes that are read at a time, at first; where an item is longer, twice as many each time."""
_NEAR_THE_END = 16
"""Characters before the end of what was read, in which a value that breaks may only be cut off."""
_AFTER_A_VALUE = frozenset(",:]}" + BLANK)
"""What stands behind a whole value; behind another character, or none, a number may go on."""


class BrokenDocument(BrokenJson):
    """The document is not JSON; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line, self.column = line, column


class JsonDocument:
    """A document that is read once, from its beginning.

    `beside` has what was read of the objects around the list so far, without the list.
    """

    def __init__(self, file: BinaryIO, decode: Callable[[str, int], tuple[Any, int]] = decode_from) -> None:
        self._file, self._decode = file, decode
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._line, self._column = 1, 1  # of the first character of _text
        self._line_breaks = (
            0,
            0,
        )  # up to which character of _text its line breaks were counted, and how many there are
        self._ended = False
        self.beside: dict[str, Any] = {}

    def first(self) -> str:
        """Return the first character that says what the document is: `[`, `{` or another; empty if there is none."""
        return self._skip()

    def items(self, *lists: tuple[str, ...]) -> Iterator[tuple[int, Any]]:
        """Yield each item with the line it begins on: of the document, if it is a list, else of a list in it.

        `lists` are the places where a list may be within objects, by their keys; the first one that is there is read.
        Without any the document itself is the only item.

        Raises:
            BrokenDocument: the document is not strict JSON in UTF-8.
        """
        if self._skip() == "[":
            yield from self._list_items()
        elif self._skip() == "{":
            has_list = yield from self._object_items(lists, ())
            if not has_list:
                yield 1, self.beside
        else:
            yield self._line, self._value()
        if self._skip():
            raise self._error("there is text after the end")

    def _object_items(
        self, lists: tuple[tuple[str, ...], ...], above: tuple[str, ...]
    ) -> Generator[tuple[int, Any], None, bool]:
        """Yield the items of the first list that is there, keep what stands next to it, and return whether it was."""
        self._at += 1
        has_list, keys = False, set[str]()
        more = self._skip() != "}"
        while more:
            key = self._key(keys)
            below = () if has_list else tuple(path[1:] for path in lists if path[0] == key)
            here = self._skip()
            if here == "[" and () in below:
                has_list = True
                yield from self._list_items()
            elif here == "{" and any(below):
                self._keep((*above, key), {})
                has_list = yield from self._object_items(tuple(filter(None, below)), (*above, key))
            else:
                self._keep((*above, key), self._value())
            more = self._has_more("}")
        self._at += 1
        return has_list

    def _key(self, keys: set[str]) -> str:
        key = self._value()
        if not isinstance(key, str):
            raise self._error("a key must be a string")
        if key in keys:
            raise self._error(f"the key '{key}' occurs twice in one object")
        keys.add(key)
        if self._skip() != ":":
            raise self._error("':' is missing after a key")
        self._at += 1
        return key

    def _keep(self, path: tuple[str, ...], value: Any) -> None:
        holder = self.beside
        for step in path[:-1]:
            holder = holder.setdefault(step, {})
        holder[path[-1]] = value

    def _list_items(self) -> Iterator[tuple[int, Any]]:
        self._at += 1
        more = self._skip() != "]"
        while more:
            line = self._line_of(self._at)
            yield line, self._value()
            more = self._has_more("]")
        self._at += 1

    def _has_more(self, end: str) -> bool:
        """Step over a comma and say that there is more, or stop before the end."""
        character = self._skip()
        if character == end:
            return False
        if character != ",":
            raise self._error(f"',' or '{end}' is missing after a {'row' if end == ']' else 'value'}")
        self._at += 1
        self._skip()
        return True

    def _value(self) -> Any:
        """Return the value that begins here, and step over it."""
        self._skip()
        size = _PIECE
        while True:
            try:
                value, end = self._decode(self._text, self._at)
                if self._text[end : end + 1] in _AFTER_A_VALUE or not self._more(size):
                    break
            except BrokenJson as error:
                raise self._error(str(error)) from error
            except json.JSONDecodeError as error:
                if not (_may_be_cut_off(error) and self._more(size)):
                    raise self._error(f"not valid JSON: {error.msg}", error.pos) from error
            except (ValueError, RecursionError) as error:
                raise self._error(str(wrap_decode_error(error))) from error
            size *= 2
        try:
            check_depth(value)
        except BrokenJson as error:
            raise self._error(str(error)) from error
        self._at = end
        return value

    def _skip(self) -> str:
        """Step over blanks, drop what was read before, and return the next character; empty at the end."""
        while True:
            text = self._text
            while self._at < len(text) and text[self._at] in BLANK:
                self._at += 1
            if self._at < len(text):
                break
            self._drop()
            if not self._more(_PIECE):
                return ""
        if self._at > _PIECE:
            self._drop()
        return self._text[self._at]

    def _drop(self) -> None:
        self._line, self._column = self._place(self._at)
        self._text, self._at, self._line_breaks = self._text[self._at :], 0, (0, 0)

    def _more(self, size: int) -> bool:
        """Read on; False at the end of the file."""
        if self._ended:
            return False
        data = self._file.read(size)
        self._ended = not data
        try:
            self._text += self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            self._text += error.object[: error.start].decode("utf-8", "ignore")
            line, column = self._place(len(self._text))
            raise BrokenDocument(
                f"not UTF-8: byte 0x{byte:02x} cannot be read; save the file as UTF-8", line, column
            ) from error
        return not self._ended

    def _line_of(self, at: int) -> int:
        """Return the line of a character that lies behind the one that was asked for before."""
        before, lines = self._line_breaks
        self._line_breaks = (at, lines + self._text.count("\n", before, at))
        return self._line + self._line_breaks[1]

    def _place(self, at: int) -> tuple[int, int]:
        """Return the line and the column of a character of what is in memory."""
        lines = self._text.count("\n", 0, at)
        if not lines:
            return self._line, self._column + at
        return self._line + lines, at - self._text.rfind("\n", 0, at)

    def _error(self, message: str, at: int | None = None) -> BrokenDocument:
        return BrokenDocument(message, *self._place(self._at if at is None else at))


def _may_be_cut_off(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string") or error.pos >= len(error.doc) - _NEAR_THE_END


ENOUGH = 1 << 22
"""Bytes that are read at first; where no item of a list ends in them, twice as many each time."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', re.DOTALL)
_ENDS = {b"[": b"]", b"{": b"}"}


def head_of(file: BinaryIO, enough: int = ENOUGH) -> bytes:
    """Return a document, or of a long one its beginning: up to the last whole item of the outermost list with any."""
    data = file.read(enough)
    while len(data) >= enough:
        if (ended := _close_document(data)) is not None:
            return ended
        data, enough = data + file.read(enough), enough * 2
    return data


def _close_document(data: bytes) -> bytes | None:
    """Return a document that breaks off, ended behind the last whole item of its outermost list; None without any."""
    opened: list[tuple[bytes, int]] = []  # each bracket, and where the last comma within it stands
    for token in _TOKEN.finditer(data):
        match token[0]:
            case b"[" | b"{" as bracket:
                opened.append((bracket, 0))
            case b"]" | b"}" if opened:
                opened.pop()
            case b"," if opened:
                opened[-1] = (opened[-1][0], token.start())
            case b'"':
                break  # a text that goes on
            case _:
                pass
    for depth, (bracket, comma) in enumerate(opened, 1):
        if bracket == b"[" and comma:
            return data[:comma] + b"".join(_ENDS[opening] for opening, _ in reversed(opened[:depth]))
    return None
