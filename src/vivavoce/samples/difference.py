"""How two contents of a dataset differ: rows added, removed and changed, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.samples.content import Content, RowKey

NAMED = 5
"""Rows of one kind that a sentence names."""


class Missing:
    """What a field is that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A value that changed; `path` is dotted, a number steps into a list from 0, `MISSING` is no value at all."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that both contents have, and what changed in it."""

    key: RowKey
    fields: Sequence[FieldChange]

    @property
    def names(self) -> list[str]:
        """The names of the fields that changed."""
        return list(dict.fromkeys(field.path.partition(".")[0] for field in self.fields))


@dataclass(frozen=True, slots=True)
class Difference:
    """What leads from content `a` to content `b`; `moved` says that the rows of both stand in another order."""

    a: Content
    b: Content
    added: Sequence[RowKey]
    removed: Sequence[RowKey]
    changed: Sequence[RowChange]
    moved: bool

    @property
    def unrelated(self) -> bool:
        """Whether not one row is in both, as where they are two datasets."""
        return bool(self.a.rows and self.b.rows) and not self.a.rows.keys() & self.b.rows.keys()

    def in_words(self) -> str:
        """Return the difference as a part of a sentence."""
        changed = [f"{change.key}: {', '.join(change.names)}" for change in self.changed]
        parts = [
            *_counted(list(map(str, self.added)), "added"),
            *_counted(list(map(str, self.removed)), "removed"),
            *_counted(changed, "changed", "; "),
            *(["the order of rows"] if self.moved else []),
        ]
        return ", ".join(parts) or "no difference"


def difference(a: Content, b: Content) -> Difference:
    """Return how content `b` differs from content `a`; rows are the same row by id and trial."""
    common = [key for key in a.rows if key in b.rows]
    changes = [RowChange(key, list(_changes("", a.rows[key], b.rows[key]))) for key in common]
    return Difference(
        a,
        b,
        added=[key for key in b.rows if key not in a.rows],
        removed=[key for key in a.rows if key not in b.rows],
        changed=[change for change in changes if change.fields],
        moved=common != [key for key in b.rows if key in a.rows],
    )


def _changes(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    """Yield what differs between two values, as deep inside them as it can be named."""
    left, right = _parts(before), _parts(after)
    if left is None or right is None or type(before) is not type(after):
        if type(before) is not type(after) or before != after:
            yield FieldChange(path, before, after)
        return
    for name in dict.fromkeys((*left, *right)):
        inner = f"{path}.{name}" if path else name
        yield from _changes(inner, left.get(name, MISSING), right.get(name, MISSING))


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of an object or a list by their names or places, None for any other value."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if isinstance(value, list):
        return {str(place): item for place, item in enumerate(cast("list[Any]", value))}
    return None


def _counted(names: Sequence[str], what: str, between: str = ", ") -> list[str]:
    if not names:
        return []
    more = f"{between}and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    rows = "1 row" if len(names) == 1 else f"{len(names):,} rows"
    return [f"{rows} {what} ({between.join(names[:NAMED])}{more})"]
