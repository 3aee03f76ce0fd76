"""The beginning of a long JSON document, ended so that it is a document itself."""

from __future__ import annotations

import re
from typing import BinaryIO

ENOUGH = 1 << 22
"""Bytes that are read at first; where no item of a list ends in them, twice as many each time."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{},]', re.DOTALL)
_ENDS = {b"[": b"]", b"{": b"}"}


def head_of(file: BinaryIO, enough: int = ENOUGH) -> bytes:
    """Return a document, or of a long one its beginning: up to the last whole item of the outermost list with any."""
    data = file.read(enough)
    while len(data) >= enough:
        if (ended := _ended(data)) is not None:
            return ended
        data, enough = data + file.read(enough), enough * 2
    return data


def _ended(data: bytes) -> bytes | None:
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
            return data[:comma] + b"".join(_ENDS[one] for one, _ in reversed(opened[:depth]))
    return None
