"""`TargetData`: records that exist in a target, such as its orders, for scenarios that ask about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.penelope.words import Words
from vivavoce.safe_text import quoted

MAX_CHARS = 10_000_000
"""Characters of data at most; a value is looked up in all of them."""
ROOM = 24_000
"""Characters of data that one request shows at most."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Records as a request shows them, as JSON, each on one line; `unshown` is how many it leaves out."""

    lines: Sequence[str] = ()
    unshown: int = 0


class TargetData:
    """The records, each once; a request shows as many as it has room for.

    Raises:
        UsageError: there is no record, one is not a mapping, none is small enough to be shown, or there are too many.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        texts: list[str] = []
        lines: dict[str, None] = {}
        size = 0
        for place, record in enumerate(records):
            line = _line(record, place)
            if line in lines:
                continue
            size += len(line)
            if size > MAX_CHARS:
                raise UsageError(f"the data has more than {MAX_CHARS:,} characters; remove records")
            lines[line] = None
            texts += _values(record)
        if not lines:
            raise UsageError("the data has no records")
        pages = list(_pages(line for line in lines if len(line) < ROOM))
        if not pages:
            raise UsageError(f"every record of the data has {ROOM:,} characters or more, so none fits")
        self._excerpts = [Excerpt(page, len(lines) - len(page)) for page in pages]
        self._words = Words(texts)

    def excerpt(self, request: int) -> Excerpt:
        """Return what a request shows, counted from 0: each the records after those of the one before, and round."""
        return self._excerpts[request % len(self._excerpts)]

    def hold(self, value: str) -> bool:
        """Say whether a value stands in a record, as whole words of one field."""
        return self._words.hold(value)


def _line(record: object, place: int) -> str:
    if not isinstance(record, Mapping):
        raise UsageError(f"record {place} of the data is a {type(record).__name__}; expected an object with keys")
    return quoted(dict(cast("Mapping[str, Any]", record)))


def _pages(lines: Iterable[str]) -> Iterator[list[str]]:
    page: list[str] = []
    room = ROOM
    for line in lines:
        if page and room < len(line) + 1:
            yield page
            page, room = [], ROOM
        page.append(line)
        room -= len(line) + 1
    if page:
        yield page


def _values(value: object) -> Iterator[str]:
    """Yield the texts and numbers in a record; names of fields, and true, false and nothing, are no values."""
    if isinstance(value, Mapping):
        for inner in cast("Mapping[Any, object]", value).values():
            yield from _values(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _values(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
