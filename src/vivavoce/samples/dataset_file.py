"""What a dataset file holds: its rows, its versions, and how two differ; and how a row is added to it.

The version is a hash of the rows in their order, so it stays the same where a file is only laid out again: other
spaces, other line ends, keys in another order. Text files that rows name by a path are not a part of it.

They belong to the dataset and not to a store: what a suite pins is then in the repository with it, for everybody who
runs it. A copy is called by its number and its version, and has the bytes that the file had.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.files.paths import whole_file
from vivavoce.files.rows import Format, Row, format_of, read_rows
from vivavoce.safe_text import encodable
from vivavoce.samples.table import json_cell

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


MAX_NAMES = 5
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

    def describe(self) -> str:
        """Return the difference as a part of a sentence."""
        changed = [f"{change.key}: {', '.join(change.names)}" for change in self.changed]
        parts = [
            *_count_rows(list(map(str, self.added)), "added"),
            *_count_rows(list(map(str, self.removed)), "removed"),
            *_count_rows(changed, "changed", "; "),
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


def _count_rows(names: Sequence[str], what: str, between: str = ", ") -> list[str]:
    if not names:
        return []
    more = f"{between}and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    rows = "1 row" if len(names) == 1 else f"{len(names):,} rows"
    return [f"{rows} {what} ({between.join(names[:MAX_NAMES])}{more})"]


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
    matches = ((_NAME.fullmatch(path.stem), path) for path in files if path.suffix == dataset.suffix)
    return sorted(
        (KeptVersion(int(name[1]), name[2], path) for name, path in matches if name),
        key=lambda version: (version.number, version.version),
    )


def keep_version(dataset: Path) -> tuple[KeptVersion, bool]:
    """Keep the present content of a dataset, and return it with whether it is new.

    Raises:
        UsageError: the file cannot be read, has a broken row or two with one id, or the copy cannot be written.
    """
    version, versions = read_content(dataset).version, kept_versions(dataset)
    known = next((record for record in versions if record.version == version), None)
    if known is not None:
        return known, False
    number = max((record.number for record in versions), default=0) + 1
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
    record = next((candidate for candidate in known if candidate.version == version), None)
    if record is None:
        raise UsageError(f"{dataset}: {unknown_version(dataset, version)}")
    content = read_content(record.path)
    if content.version != version:
        what = f"was changed after it was kept: it holds {content.version}; restore it, or delete it"
        raise UsageError(Problem(what, record.path))
    return content


def unknown_version(dataset: Path, version: str) -> str:
    """Say that a version of a dataset is not kept, and where else it is or what is kept."""
    other = next(
        (
            candidate
            for candidate in _others(dataset)
            if any(version == record.version for record in kept_versions(candidate))
        ),
        None,
    )
    if other is not None:
        return f"{version} is a version of another dataset, {other.name}"
    known = ", ".join(record.version for record in kept_versions(dataset)[-3:])
    return f"the version {version} is not kept; kept: {known or 'none'}"


def _folder(dataset: Path) -> Path:
    return dataset.with_name(f"{dataset.name}.versions")


def _others(dataset: Path) -> list[Path]:
    """Return the other datasets of the same folder of which versions are kept."""
    beside = (path.with_suffix("") for path in sorted(dataset.parent.glob("*.versions")) if path.is_dir())
    return [path for path in beside if path.name != dataset.name]


try:
    import fcntl
except ImportError:  # Windows has no such locks; of two that add at once there, one row may be lost
    fcntl = None

WAIT = 10.0
"""Seconds to wait while somebody else adds a row."""

CAPTURED_FROM = "captured_from"
"""The key in the metadata of a row that says which conversation it was made of."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The id of a row in a dataset; `is_new` is False where the row of that conversation was there before."""

    id: str
    is_new: bool


def append_row(path: Path, row: Mapping[str, Any]) -> Appended:
    """Add a row to the end of a JSONL file, which is made where there is none.

    A row of the same conversation is not added again; an id that is there already gets a number behind it.

    Raises:
        UsageError: the file is not JSONL, has a broken row or two with one id, or cannot be written.
    """
    if format_of(path) != "jsonl":
        raise UsageError(Problem("a row can be added to JSONL only; name a file such as captured.jsonl", path))
    with _alone(path):
        content = read_content(path) if _is_there(path) else None
        known = None if content is None else _captured_before(content, row)
        if known is not None:
            return Appended(known, is_new=False)
        free = _free_id(str(row["id"]), content)
        line = encodable(json_cell({**row, "id": free})).encode()
        with whole_file(path) as new:
            old = path.read_bytes() if content is not None else b""
            new.write_bytes(old + (b"" if not old or old.endswith(b"\n") else b"\n") + line + b"\n")
            if content is not None:
                shutil.copymode(path, new)
    return Appended(free, is_new=True)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise UsageError(Problem(f"cannot be read: {error.strerror}", path)) from error


def _captured_before(content: Content, row: Mapping[str, Any]) -> str | None:
    """Return the id of the row that was made of the same conversation, None if there is none."""
    made_of = _captured_from(row)
    for key, known in content.rows.items():
        if made_of is not None and _captured_from(known) == made_of:
            return key.id
    return None


def _captured_from(row: Mapping[str, Any]) -> object:
    metadata = row.get("metadata")
    return cast("Mapping[str, Any]", metadata).get(CAPTURED_FROM) if isinstance(metadata, Mapping) else None


def _free_id(requested_id: str, content: Content | None) -> str:
    used_ids = {key.id for key in content.rows} if content is not None else set[str]()
    number = 1
    while (name := requested_id if number == 1 else f"{requested_id}-{number}") in used_ids:
        number += 1
    return name


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Hold the folder of a file, so that two that add a row do so one after the other.

    Raises:
        UsageError: the folder cannot be used, or somebody else holds it for too long.
    """
    folder = path.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    except OSError as error:
        raise UsageError(Problem(f"cannot be written: {error.strerror or error}", path)) from error
    try:
        if descriptor is not None:
            _lock(descriptor, path)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    assert fcntl is not None
    until = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise UsageError(Problem("another program is writing in its folder; try again", path)) from None
            time.sleep(0.02)
