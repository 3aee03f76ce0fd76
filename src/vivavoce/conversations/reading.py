"""Conversations read from files of any format, which the first records show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, cast

from vivavoce.comparing.json_values import decode_lenient_from
from vivavoce.conversations.format import (
    NATIVE,
    ROW_FIELDS,
    TABLE,
    Format,
    Loss,
    Place,
    Record,
    Row,
    all_formats,
    format_named,
    others_are_off,
    scan_document,
    scan_records,
)
from vivavoce.conversations.own_rows import is_native
from vivavoce.conversations.shapes import check_calls
from vivavoce.errors import Problem, UsageError
from vivavoce.files.json_document import JsonDocument, head_of
from vivavoce.files.rows import open_file

SCAN_LIMIT = 20
"""How many records are looked at: the first ones may hold only what several formats have in common."""

_HEAD = 64
_TABLES = (b"PAR1", b"ARROW1")
"""What files of Parquet and Arrow begin with."""


def detect(path: Path) -> Format:
    """Return the format of a file; our own, where nothing speaks for another.

    No other format is loaded where the first records are rows of ours.

    Raises:
        UsageError: the file cannot be opened, it may be of several formats, or nothing in it is ours and the formats of
            other tools are switched off.
    """
    is_ours, known = _told_by_content(path)
    if not is_ours and known is None and (off := others_are_off()):
        raise UsageError(Problem(f"does not start with vivavoce rows{off}", path))
    return known or format_named(NATIVE)


def _told_by_content(path: Path) -> tuple[bool, Format | None]:
    """Return whether one of the first records is a row of ours, and the format that they are of for certain."""
    with open_file(path) as file:
        head = file.read(_HEAD)
    if _is_binary(head):
        alike = [format_ for format_ in all_formats() if format_.begins and head.startswith(format_.begins)]
        if alike or others_are_off():
            return False, _one_of(alike, path) if alike else None
    looked_at = _Looked(path)
    first = looked_at.records()
    if first and all(map(_is_only_ours, first)):
        return True, format_named(NATIVE)
    formats = [format_ for format_ in all_formats() if format_.name != NATIVE and format_.read is not None]
    fitting = [format_ for format_ in formats if any(map(format_.fits, looked_at.records(format_.lists)))]
    names = [format_.name for format_ in fitting if not format_.is_general] or [format_.name for format_ in fitting]
    is_ours = not first or any(is_native(record.value) for record in first)
    return is_ours, format_named(_only(names, path)) if names else None


def _only(names: list[str], path: Path) -> str:
    if len(names) > 1:
        raise UsageError(Problem(f"may be of several formats; say which with --from: {', '.join(names)}", path))
    return names[0]


def _is_only_ours(record: Record) -> bool:
    """Return whether a record is a row of ours in which nothing speaks for another format."""
    fields = record.fields or {}
    return fields.keys() <= ROW_FIELDS and is_native(fields)


def format_with(path: Path, known: Format | None, fields: Mapping[str, str]) -> tuple[Format, Mapping[str, str]]:
    """Return the format of a file that reads the named columns of a table, and the other fields.

    Where `fields` says which column holds what is said or by whom, the file is a table with a message in each row.

    Raises:
        UsageError: the file cannot be opened, or it may be of several formats.
    """
    if known is None:
        known = format_named(TABLE) if {"content", "role"} & fields.keys() else None
        known = known or (_told_by_content(path)[1] or format_named(NATIVE) if fields else detect(path))
        known = format_named(NATIVE) if fields and known.is_row else known
    if known.with_columns is None:
        return known, fields
    columns = {field: column for field, column in fields.items() if field in known.columns}
    return known.with_columns(known, columns), {name: path for name, path in fields.items() if name not in columns}


def _is_binary(head: bytes) -> bool:
    """Return whether the first bytes of a file show its format: neither a text nor a table of columns."""
    return b"\0" in head and not head.startswith(_TABLES)


def _one_of(alike: list[Format], path: Path) -> Format:
    """Return the one of formats that begin alike that a file is of."""
    wrong = {format_.name: format_.wrong_with(path) if format_.wrong_with else None for format_ in alike}
    fitting = [name for name, why in wrong.items() if why is None]
    if not fitting:
        raise UsageError(Problem("; ".join(filter(None, dict.fromkeys(wrong.values()))), path))
    return format_named(_only(fitting, path))


class _Looked:
    """The first records of a file, which in a document stand at the places where formats keep lists."""

    def __init__(self, path: Path) -> None:
        self._path, self._head = path, None
        if path.suffix.lower() == ".json":
            with open_file(path) as file:
                self._head = head_of(file)
        self._records: dict[tuple[tuple[str, ...], ...], list[Record]] = {}

    def records(self, lists: tuple[tuple[str, ...], ...] = ()) -> list[Record]:
        if self._head is None:
            lists = ()
        if lists not in self._records:
            self._records[lists] = [
                record for record in islice(self._scan(lists), SCAN_LIMIT) if isinstance(record, Record)
            ]
        return self._records[lists]

    def _scan(self, lists: tuple[tuple[str, ...], ...]) -> Iterator[Record | Problem]:
        if self._head is None:
            return scan_records(self._path)
        return scan_document(JsonDocument(BytesIO(self._head), decode_lenient_from), self._path, lists)


def read(source: Path | Sequence[Path], format_: Format, loss: Loss) -> Iterator[tuple[Place, Row]]:
    """Yield each conversation of files with the place where it begins; memory stays flat where the format allows it.

    What cannot be read is in the loss report, and what stands behind it is read, where the format tells where that is.

    Raises:
        UsageError: a file cannot be opened, or the format cannot be read.
    """
    if format_.read is None:
        raise UsageError(f"the format {format_.title} is write-only")
    files = [source] if isinstance(source, Path) else list(source)
    loss.format, loss.conversation = format_.title, None
    for place, row in format_.read(_records(files, format_, loss, several=len(files) > 1), loss):
        messages: object = row.get("messages")
        loss.line = place.line
        loss.at(row)
        if isinstance(messages, list):
            check_calls(cast("list[Any]", messages), loss)
        yield place, row
        loss.conversation = None


def scan(file: Path, format_: Format, loss: Loss) -> Iterator[tuple[int, Row | Problem]]:
    """Yield each conversation of a file with the line it begins on, and a `Problem` in place of what cannot be read.

    Raises:
        UsageError: the file cannot be opened, or the format cannot be read.
    """
    problems: list[Problem] = []
    loss.on_broken = lambda what: problems.append(Problem(what, file, loss.line or None))
    for place, row in read(file, format_, loss):
        yield from _take_problems(problems)
        yield place.line, row
    yield from _take_problems(problems)


def _take_problems(problems: list[Problem]) -> Iterator[tuple[int, Problem]]:
    """Yield problems and forget them."""
    while problems:
        problem = problems.pop(0)
        yield problem.line or 0, problem


def files_in(source: Path) -> list[Path]:
    """Return a file, or the files of a folder in the order of their names.

    Of a data set of Hugging Face that was saved or downloaded, these are the files of its rows.

    Raises:
        UsageError: the folder has no files, or holds several data sets.
    """
    if not source.is_dir():
        return [source]
    if (source / "dataset_dict.json").is_file():
        parts = ", ".join(sorted(path.name for path in source.iterdir() if path.is_dir()))
        raise UsageError(Problem(f"has several datasets; name the folder of one: {parts}", source))
    files = _of_rows(source) or _of_rows(source / "data") or _visible(source)
    if not files:
        raise UsageError(Problem("is a folder without files", source))
    return files


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _of_rows(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder, or else its Parquet files."""
    return sorted(folder.glob("*.arrow")) or sorted(folder.glob("*.parquet"))


def _records(files: Sequence[Path], format_: Format, loss: Loss, *, several: bool) -> Iterator[Record]:
    for file in files:
        loss.file = file.name if several else ""
        for record in format_.records(file) if format_.records else scan_records(file, format_.lists):
            if isinstance(record, Problem):
                loss.line = record.line or 0
                loss.add_broken(record.message)
            else:
                loss.line = record.place.line
                yield record
