"""The records of a file, one at a time, wherever in it they stand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from vivavoce.errors import Problem
from vivavoce.files.json_document import BrokenDocument, JsonDocument
from vivavoce.files.rows import format_of, open_file, scan_lines, scan_rows


class Place(NamedTuple):
    """A place in a file; lines count from 1."""

    file: Path
    line: int


class Record(NamedTuple):
    """One record, where it begins, and what stands beside the list that it is in, as far as that was read."""

    place: Place
    value: object
    beside: Mapping[str, Any] = MappingProxyType({})

    @property
    def fields(self) -> dict[str, Any] | None:
        """The value, if it is an object."""
        value: Any = self.value
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def scan_records(path: Path, lists: Collection[tuple[str, ...]] = ()) -> Iterator[Record | Problem]:
    """Yield each record of a JSONL, JSON, CSV, Parquet or Arrow file, and a `Problem` in place of a broken one.

    `lists` are the places within a JSON document where there may be a list of records; a document without any is a
    record.

    Raises:
        UsageError: the file cannot be opened, or its suffix is of no format that we read.
        MissingExtra: Parquet or Arrow without pyarrow.
    """
    match format_of(path):
        case "jsonl":
            with open_file(path) as file:
                yield from (_record(path, line, value) for line, value in scan_lines(file, path))
        case "json":
            with open_file(path) as file:
                yield from scan_document(JsonDocument(file), path, lists)
        case "csv" | "parquet" | "arrow":
            yield from (_record(path, line, row) for line, row in scan_rows(path))


def _record(path: Path, line: int, value: Any | Problem) -> Record | Problem:
    return value if isinstance(value, Problem) else Record(Place(path, line), value)


def scan_document(
    document: JsonDocument, path: Path, lists: Collection[tuple[str, ...]] = ()
) -> Iterator[Record | Problem]:
    """Yield each record of a JSON document, and a `Problem` where it breaks off."""
    try:
        for line, item in document.items(*lists):
            beside = {} if item is document.beside else document.beside
            yield Record(Place(path, line), item, beside)
    except BrokenDocument as error:
        yield Problem(str(error), path, error.line, error.column)
