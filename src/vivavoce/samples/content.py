"""What a dataset file holds: its rows by their ids, and the version that names exactly this content.

The version is a hash of the rows in their order, so it stays the same where a file is only laid out anew: other spaces,
other line ends, keys in another order. Text files that rows name by a path are not a part of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import Format, Row, read_rows

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
