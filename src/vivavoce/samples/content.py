"""What a dataset file holds: its rows, its version, the versions that are kept, and how two of them differ.

The version is a hash of the rows in their order, so it stays the same where a file is only laid out again: other
spaces, other line ends, keys in another order. Text files that rows name by a path are not a part of it.

They belong to the dataset and not to a store: what a suite pins is then in the repository with it, for everybody who
runs it. A copy is called by its number and its version, and has the bytes that the file had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import Format, Row, format_of, read_rows
from vivavoce.files.whole_file import whole_file

VERSION = re.compile(r"v[0-9a-f]{16}")
"""What a version looks like: never like a number, which YAML would read as one."""


class RowKey(NamedTuple):
    """What makes a row unique in its file: its id, its place from 0 where it has none, and its trial from 0."""

    id: str
    trial: int

    def __str__(self) -> str:
        return self.id if self.trial == 0 else f"{self.id}#{self.trial + 1}"


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of a dataset file in their order, and their version."""

    path: Path
    version: str
    rows: Mapping[RowKey, Row]


def read_content(path: Path, format: Format | None = None) -> Content:  # noqa: A002
    """Read a dataset file, whatever fields its rows have; its suffix tells the format unless that is named.

    Raises:
        UsageError: the file cannot be read, a row is broken, or two have the same id and trial.
    """
    rows: dict[RowKey, Row] = {}
    lines: dict[RowKey, int] = {}
    for position, (line, row) in enumerate(read_rows(path, format)):
        key = key_of(row, position)
        if key in rows:
            rule = "give each row its own id, or the trials of one id a 'trial' each"
            raise UsageError(
                Problem(f"id '{key.id}' with trial {key.trial} is already in line {lines[key]}; {rule}", path, line)
            )
        rows[key], lines[key] = row, line
    return Content(path, version_of(rows), rows)


def key_of(row: Row, position: int) -> RowKey:
    """Return what a row is called; `position` is its place in the file, from 0."""
    name: Any = row.get("sample_id")
    name = row.get("id") if name is None else name
    name = position if name is None else name
    trial = str(row.get("trial"))
    whole = int(name) if isinstance(name, float) and name.is_integer() else name
    return RowKey(str(whole), int(trial) if trial.isdecimal() else 0)


def version_of(rows: Mapping[RowKey, Row]) -> str:
    """Return the version of rows in their order."""
    digest = blake2b(digest_size=8)
    for line in _canonical(rows):
        digest.update(line.encode())
        digest.update(b"\n")
    return f"v{digest.hexdigest()}"


def _canonical(rows: Mapping[RowKey, Row]) -> Iterator[str]:
    return (json.dumps(row, sort_keys=True, separators=(",", ":")) for row in rows.values())


NAMED = 5
"""Rows of one kind that a sentence names."""


class Missing:
    """What a field is that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A value that changed; `path` is dotted, a number steps into a list from 0, `MISSING` is not a value at all."""

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


_NAME = re.compile(rf"([0-9]{{1,9}})-({VERSION.pattern})")


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A copy of a dataset file; `number` counts from 1 in the order in which versions were kept."""

    number: int
    version: str
    path: Path


def kept_versions(dataset: Path) -> list[KeptVersion]:
    """Return the kept versions of a dataset, oldest first."""
    folder = _folder(dataset)
    files = folder.iterdir() if folder.is_dir() else ()
    named = ((_NAME.fullmatch(path.stem), path) for path in files if path.suffix == dataset.suffix)
    return sorted(
        (KeptVersion(int(name[1]), name[2], path) for name, path in named if name),
        key=lambda one: (one.number, one.version),
    )


def keep_version(dataset: Path) -> tuple[KeptVersion, bool]:
    """Keep the present content of a dataset, and return it with whether it is new.

    Raises:
        UsageError: the file cannot be read, has a broken row or two with one id, or the copy cannot be written.
    """
    version, kept = read_content(dataset).version, kept_versions(dataset)
    known = next((one for one in kept if one.version == version), None)
    if known is not None:
        return known, False
    number = max((one.number for one in kept), default=0) + 1
    path = _folder(dataset) / f"{number}-{version}{dataset.suffix}"
    with whole_file(path) as new:
        new.write_bytes(dataset.read_bytes())
        if read_content(new, format_of(dataset)).version != version:
            raise UsageError(Problem("changed while it was being saved; try again", dataset))
    return KeptVersion(number, version, path), True


def read_version(dataset: Path, version: str) -> Content:
    """Return the content of a kept version.

    Raises:
        UsageError: it is not kept, or its copy was changed.
    """
    known = kept_versions(dataset)
    found = next((one for one in known if one.version == version), None)
    if found is None:
        raise UsageError(f"{dataset}: {unknown_version(dataset, version)}")
    content = read_content(found.path)
    if content.version != version:
        what = f"was changed after it was kept: it holds {content.version}; restore it, or delete it"
        raise UsageError(Problem(what, found.path))
    return content


def unknown_version(dataset: Path, version: str) -> str:
    """Say that a version of a dataset is not kept, and where else it is or what is kept."""
    other = next((one for one in _others(dataset) if any(version == kept.version for kept in kept_versions(one))), None)
    if other is not None:
        return f"{version} is a version of another dataset, {other.name}"
    known = ", ".join(one.version for one in kept_versions(dataset)[-3:])
    return f"the version {version} is not kept; kept: {known or 'none'}"


def _folder(dataset: Path) -> Path:
    return dataset.with_name(f"{dataset.name}.versions")


def _others(dataset: Path) -> list[Path]:
    """Return the other datasets of the same folder of which versions are kept."""
    beside = (path.with_suffix("") for path in sorted(dataset.parent.glob("*.versions")) if path.is_dir())
    return [path for path in beside if path.name != dataset.name]
