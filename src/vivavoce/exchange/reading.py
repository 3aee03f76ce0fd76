"""Conversations read from files of any format, which the first records show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, cast

from vivavoce.comparing.json_values import decode_lenient_from
from vivavoce.errors import Problem, UsageError
from vivavoce.exchange.format import (
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
    scan_document,
    scan_records,
)
from vivavoce.exchange.native import is_native
from vivavoce.exchange.shapes import check_calls
from vivavoce.files.json_document import JsonDocument, head_of
from vivavoce.files.rows import open_file

LOOKED_AT = 20
"""How many records are looked at: the first ones may hold only what several formats have in common."""

_HEAD = 64


def detect(path: Path) -> Format:
    """Return the format of a file; our own, where nothing speaks for another.

    Raises:
        UsageError: the file cannot be opened, or it may be of several formats.
    """
    if alike := _by_first_bytes(path):
        return _one_of(alike, path)
    looked_at = _Looked(path)
    first = looked_at.records()
    if first and all(_is_ours(one) for one in first):
        return format_named(NATIVE)
    formats = [one for one in all_formats() if one.name != NATIVE and one.read is not None]
    fitting = [one for one in formats if any(map(one.fits, looked_at.records(one.lists)))]
    found = [one.name for one in fitting if not one.is_general] or [one.name for one in fitting]
    return format_named(_only(found, path) if found else NATIVE)


def _only(names: list[str], path: Path) -> str:
    if len(names) > 1:
        raise UsageError(Problem(f"may be of several formats; say which with --from: {', '.join(names)}", path))
    return names[0]


def _is_ours(record: Record) -> bool:
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
        known = format_named(TABLE) if {"content", "role"} & fields.keys() else detect(path)
        known = format_named(NATIVE) if fields and known.is_row else known
    if known.with_columns is None:
        return known, fields
    columns = {field: column for field, column in fields.items() if field in known.columns}
    return known.with_columns(known, columns), {name: path for name, path in fields.items() if name not in columns}


def _by_first_bytes(path: Path) -> list[Format]:
    with open_file(path) as file:
        head = file.read(_HEAD)
    if head.lstrip()[:1] in (b"{", b"[") or not head:
        return []
    return [one for one in all_formats() if one.begins and head.startswith(one.begins)]


def _one_of(alike: list[Format], path: Path) -> Format:
    """Return the one of formats that begin alike that a file is of."""
    wrong = {one.name: one.wrong_with(path) if one.wrong_with else None for one in alike}
    found = [name for name, why in wrong.items() if why is None]
    if not found:
        raise UsageError(Problem("; ".join(filter(None, dict.fromkeys(wrong.values()))), path))
    return format_named(_only(found, path))


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
            self._records[lists] = [one for one in islice(self._scanned(lists), LOOKED_AT) if isinstance(one, Record)]
        return self._records[lists]

    def _scanned(self, lists: tuple[tuple[str, ...], ...]) -> Iterator[Record | Problem]:
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
        raise UsageError(f"the format {format_.title} can only be written")
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
        yield from _taken(problems)
        yield place.line, row
    yield from _taken(problems)


def _taken(problems: list[Problem]) -> Iterator[tuple[int, Problem]]:
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
        raise UsageError(Problem(f"holds several data sets; name the folder of one: {parts}", source))
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
                loss.broken(record.message)
            else:
                loss.line = record.place.line
                yield record
