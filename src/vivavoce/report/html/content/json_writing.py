"""Writing JSON trees: pretty printed, with folds. The text of what is written is the same JSON again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from vivavoce.report.html.content.json_tree import Container, Entry, Scalar, Value, json_leaves
from vivavoce.report.html.content.writing import TreeWriter, placed_marks
from vivavoce.report.html.evidence import Mark

WIDEST = 72
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
        for one in value.entries:
            yield self._key(one)
            yield from self.line(one.value)
            yield "" if one.comma is None else f"{self._leaf(one.comma)} "
        yield self._close(value)

    def _entries(self, value: Container) -> Iterator[str]:
        yield '<div class="in">'
        for one in value.entries:
            yield from ("<div>", *self._entry(one), "</div>")
        yield "</div>"

    def _entry(self, one: Entry) -> Iterator[str]:
        key, comma = self._key(one), "" if one.comma is None else self._leaf(one.comma)
        value = one.value
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

    def _key(self, one: Entry) -> str:
        if one.key is None or one.colon is None:
            return ""
        return f'<span class="key">{self._leaf(one.key)}</span>{self._leaf(one.colon)} '

    def _close(self, value: Container) -> str:
        return '<span class="cut">…</span>' if value.closing is None else self._leaf(value.closing)

    def _has_marks(self, value: Container) -> bool:
        return any(id(leaf) in self._placed for leaf in json_leaves(value))


def _is_short(value: Container) -> bool:
    return value.width <= WIDEST and (value.flat or value.width <= WIDEST // 2) and not value.has_inner
