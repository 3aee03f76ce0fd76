"""Adding a row to a JSONL dataset: the file holds the row or is as it was, and no id comes twice."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.files.rows import format_of
from vivavoce.files.whole_file import whole_file
from vivavoce.safe_text import encodable
from vivavoce.samples.content import Content, read_content
from vivavoce.samples.table import json_cell

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
        content = read_content(path) if path.exists() else None
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


def _free_id(wanted: str, content: Content | None) -> str:
    taken = {key.id for key in content.rows} if content is not None else set[str]()
    number = 1
    while (name := wanted if number == 1 else f"{wanted}-{number}") in taken:
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
