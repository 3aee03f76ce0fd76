"""JSON as a tree that knows where everything in it was written, and how a page shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from markupsafe import Markup

from vivavoce.report.html.content.blocks import Leaf
from vivavoce.report.html.content.writing import TreeWriter, placed_marks
from vivavoce.report.html.evidence import Mark, legible

MAX_DEPTH = 40
"""Objects and arrays within each other; what is deeper is not a tree."""
MAX_CHARS = 2_000_000
"""Characters of a text that is read as JSON."""
_IN_STRINGS = 2
"""How often JSON may be in a string of JSON."""

_TOKEN = re.compile(r'\s*("(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++)')


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, a number, or one of three words; `inner` is the JSON in a string, with places of its own."""

    leaf: Leaf
    inner: Container | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of an object or an array; `colon` and `comma` are as they were written, None where there is none."""

    key: Leaf | None
    colon: Leaf | None
    value: Value
    comma: Leaf | None


@dataclass(frozen=True, slots=True)
class Container:
    """An object or an array; `cut` means that it goes on where reading stopped, and then it has no end."""

    opening: Leaf
    entries: tuple[Entry, ...]
    closing: Leaf | None

    @property
    def width(self) -> int:
        """The characters of its text, as it was written."""
        return 1 << 30 if self.closing is None else self.closing.end - self.opening.start

    @property
    def flat(self) -> bool:
        """Whether nothing in it is an object or an array."""
        return all(isinstance(entry.value, Scalar) for entry in self.entries)

    @property
    def has_inner(self) -> bool:
        """Whether a string in it holds JSON."""
        values = (entry.value for entry in self.entries)
        return any(value.has_inner if isinstance(value, Container) else value.inner is not None for value in values)


Value: TypeAlias = Scalar | Container


def json_tree(text: str, limit: int) -> Container | None:
    """Return the tree of a text that is a JSON object or array; what begins after `limit` characters is left out."""
    return _read(text, limit, 0)


def json_leaves(value: Value) -> Iterator[Leaf]:
    """Yield the leaves of a tree in order, without those of JSON in its strings."""
    if isinstance(value, Scalar):
        yield value.leaf
        return
    yield value.opening
    for entry in value.entries:
        yield from (leaf for leaf in (entry.key, entry.colon) if leaf is not None)
        yield from json_leaves(entry.value)
        yield from () if entry.comma is None else (entry.comma,)
    yield from () if value.closing is None else (value.closing,)


def _read(text: str, limit: int, within: int) -> Container | None:
    if text.lstrip()[:1] not in ("{", "[") or len(text) > MAX_CHARS:
        return None
    try:
        json.loads(text)
        tree = _Reader(text, limit, within).value(0)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, Container) else None


@dataclass(slots=True)
class _Reader:
    """Reads tokens of a text that is JSON."""

    text: str
    limit: int
    within: int
    position: int = 0

    def value(self, depth: int) -> Value:
        token = self._next()
        if token.text == "{" or token.text == "[":
            if depth > MAX_DEPTH:
                raise ValueError("too deep")
            return self._container(token, depth)
        return self._scalar(token)

    def _container(self, opening: Leaf, depth: int) -> Container:
        entries: list[Entry] = []
        is_object = opening.text == "{"
        if self._peek() in "}]":
            return Container(opening, (), self._next())
        while self.position < self.limit:
            key, colon = (self._unescape(self._next()), self._next()) if is_object else (None, None)
            value = self.value(depth + 1)
            if isinstance(value, Container) and value.closing is None:
                entries.append(Entry(key, colon, value, None))
                break
            end = self._next()
            if end.text != ",":
                return Container(opening, (*entries, Entry(key, colon, value, None)), end)
            entries.append(Entry(key, colon, value, end))
        return Container(opening, tuple(entries), None)

    def _scalar(self, token: Leaf) -> Scalar:
        if token.text[0] != '"':
            return Scalar(token)
        return Scalar(self._unescape(token), self._inner(token))

    def _unescape(self, token: Leaf) -> Leaf:
        """Return a string with the letters that were written as escapes; control characters stay escapes."""
        if "\\" not in token.text:
            return token
        words = str(json.loads(token.text))
        literal = json.dumps(words, ensure_ascii=False)
        if literal == token.text or legible(words) != words:
            return token
        return Leaf(literal, token.start, token.end, verbatim=False)

    def _inner(self, token: Leaf) -> Container | None:
        """Return the JSON in a string."""
        if self.within >= _IN_STRINGS or token.text[1:2] not in ("{", "["):
            return None
        return _read(str(json.loads(token.text)), self.limit, self.within + 1)

    def _next(self) -> Leaf:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise ValueError("not JSON")
        self.position = match.end()
        return Leaf(match[1], *match.span(1))

    def _peek(self) -> str:
        match = _TOKEN.match(self.text, self.position)
        return "" if match is None else match[1]


MAX_LINE_CHARS = 72
"""Characters of an object or array on one line."""
LONG = 60
"""Entries from which an object or array within another is folded, unless it has evidence."""


def json_html(tree: Container, marks: Sequence[Mark]) -> Markup | None:
    """Return a tree as HTML, None if a mark has no words of its own in it."""
    placed = placed_marks(json_leaves(tree), marks)
    if placed is None:
        return None
    writer = _JsonWriter(TreeWriter(placed))
    inside = "".join(writer.line(tree)) if _is_short(tree) else "".join(writer.open(tree))
    return Markup(inside)


class _JsonWriter:
    def __init__(self, writer: TreeWriter) -> None:
        self._leaf = writer.leaf
        self._placed = writer.placed

    def open(self, value: Container, before: str = "", after: str = "") -> Iterator[str]:
        """Yield a container with an entry on each line."""
        yield f"{before}{self._leaf(value.opening)}"
        yield from self._entries(value)
        yield self._close(value) + after

    def line(self, value: Value) -> Iterator[str]:
        """Yield a value on one line."""
        if isinstance(value, Scalar):
            yield self._leaf(value.leaf)
            return
        yield self._leaf(value.opening)
        for entry in value.entries:
            yield self._key(entry)
            yield from self.line(entry.value)
            yield "" if entry.comma is None else f"{self._leaf(entry.comma)} "
        yield self._close(value)

    def _entries(self, value: Container) -> Iterator[str]:
        yield '<div class="in">'
        for entry in value.entries:
            yield from ("<div>", *self._entry(entry), "</div>")
        yield "</div>"

    def _entry(self, entry: Entry) -> Iterator[str]:
        key, comma = self._key(entry), "" if entry.comma is None else self._leaf(entry.comma)
        value = entry.value
        if isinstance(value, Scalar):
            yield f"{key}{self._leaf(value.leaf)}{comma}"
            if value.inner is not None:
                yield from ('<div class="inner" data-what="JSON in this string">', *self.open(value.inner), "</div>")
        elif _is_short(value):
            yield from (key, *self.line(value), comma)
        else:
            opened = "" if len(value.entries) > LONG and not self._has_marks(value) else " open"
            count = f"{len(value.entries)}{'+' if value.closing is None else ''}"
            yield f'<details{opened}><summary data-count="{count}">{key}{self._leaf(value.opening)}</summary>'
            yield from (*self._entries(value), "</details>", self._close(value), comma)

    def _key(self, entry: Entry) -> str:
        if entry.key is None or entry.colon is None:
            return ""
        return f'<span class="key">{self._leaf(entry.key)}</span>{self._leaf(entry.colon)} '

    def _close(self, value: Container) -> str:
        return '<span class="cut">…</span>' if value.closing is None else self._leaf(value.closing)

    def _has_marks(self, value: Container) -> bool:
        return any(id(leaf) in self._placed for leaf in json_leaves(value))


def _is_short(value: Container) -> bool:
    return value.width <= MAX_LINE_CHARS and (value.flat or value.width <= MAX_LINE_CHARS // 2) and not value.has_inner
