"""The rows of a file, one at a time: JSONL, JSON, CSV, Parquet and Arrow, with the line each row begins on."""

from __future__ import annotations

import codecs
import csv
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.errors import Problem, UsageError
from vivavoce.files.json_document import BrokenDocument, JsonDocument
from vivavoce.lazy_names import lazy

Row = dict[str, Any]
Format = Literal["jsonl", "json", "csv", "parquet", "arrow"]

SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_LONGEST_CELL = 2**31 - 1


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return a file's format by its suffix, in any case.

    Raises:
        UsageError: the suffix is not one of a format that we read.
    """
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        received = f"'{suffix}'" if suffix else "a name without one"
        raise UsageError(
            Problem(f"the file extension must be one of {', '.join(SUFFIXES)}; got {received}", Path(path))
        )
    return SUFFIXES[suffix.lower()]


def read_rows(path: str | os.PathLike[str], format: Format | None = None) -> Iterator[tuple[int, Row]]:  # noqa: A002
    """Yield each row with its line, in constant memory.

    Lines count from 1; for Parquet and Arrow they are row numbers. In CSV every cell is text and an empty cell is None.
    Blank lines are skipped and a byte order mark is tolerated.

    Raises:
        UsageError: the file cannot be read, or a row is broken; it names file, line and column.
        MissingExtra: Parquet or Arrow without pyarrow.
    """
    for line, row in scan_rows(path, format):
        if isinstance(row, Problem):
            raise UsageError(row)
        yield line, row


def scan_rows(
    path: str | os.PathLike[str],
    format: Format | None = None,  # noqa: A002
) -> Iterator[tuple[int, Row | Problem]]:
    """Yield each row with its line as `read_rows` does, and a `Problem` in place of a broken one.

    What stands after a broken row is read as well, where the format tells where it begins.

    Raises:
        UsageError: the file cannot be opened.
        MissingExtra: Parquet or Arrow without pyarrow.
    """
    place = Path(path)
    scan = _SCANNERS[format or format_of(place)]
    with open_file(place) as file:
        yield from scan(file, place)


def open_file(path: Path) -> BinaryIO:
    """Open a file to be read.

    Raises:
        UsageError: it cannot be opened, or is a pipe or a device, which may never end.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise UsageError(Problem("is a pipe or a device; it is read more than once, so write it to a file", path))
        return path.open("rb")
    except FileNotFoundError:
        raise UsageError(Problem("there is no such file", path)) from None
    except IsADirectoryError:
        raise UsageError(Problem("is a folder; name a file in it", path)) from None
    except (OSError, ValueError) as error:
        raise UsageError(Problem(f"cannot be read: {getattr(error, 'strerror', None) or error}", path)) from error


def _scan_jsonl(file: BinaryIO, path: Path) -> Iterator[tuple[int, Row | Problem]]:
    for number, value in scan_lines(file, path):
        yield number, value if isinstance(value, Problem) else _object(value, path, number)


def scan_lines(file: BinaryIO, path: Path) -> Iterator[tuple[int, Any | Problem]]:
    """Yield the JSON value of each line that is not blank, with its line, and a `Problem` in place of a broken one."""
    for number, line in enumerate(file, 1):
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if not text or text.isspace():
            continue
        try:
            yield number, parse(text.decode())
        except UnicodeDecodeError as error:
            yield number, _not_utf8(error, path, number)
        except BrokenJson as error:
            yield number, Problem(str(error), path, number, None if error.offset is None else error.offset + 1)


def _scan_json(file: BinaryIO, path: Path) -> Iterator[tuple[int, Row | Problem]]:
    document = JsonDocument(file)
    try:
        if document.first() != "[":
            yield 1, Problem("a .json file holds a list of rows: [{…}, {…}]", path, 1, 1)
            return
        for line, item in document.items():
            yield line, _object(item, path, line)
    except BrokenDocument as error:
        yield error.line, Problem(str(error), path, error.line, error.column)


def _scan_csv(file: BinaryIO, path: Path) -> Iterator[tuple[int, Row | Problem]]:
    csv.field_size_limit(_LONGEST_CELL)  # the module's own limit, 128 KiB, is shorter than many a conversation
    reader = csv.reader(_lines(file), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            if cells and header is None:
                header = cells
                if wrong := _wrong_header(header):
                    yield line, Problem(wrong, path, line)
                    return
            elif cells and header is not None:
                yield line, _csv_row(header, cells, path, line)
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        yield reader.line_num + 1, _not_utf8(error, path, reader.line_num + 1)
    except csv.Error as error:
        yield line, Problem(f"not valid CSV: {error}", path, line)


def _scan_parquet(_: BinaryIO, path: Path) -> Iterator[tuple[int, Row | Problem]]:
    return _number_rows(lazy("vivavoce.files.frames:parquet_rows")(path), path)


def _scan_arrow(_: BinaryIO, path: Path) -> Iterator[tuple[int, Row | Problem]]:
    return _number_rows(lazy("vivavoce.files.frames:arrow_rows")(path), path)


def _number_rows(rows: Iterator[Row], path: Path) -> Iterator[tuple[int, Row | Problem]]:
    number = 0
    try:
        for number, row in enumerate(rows, 1):
            yield number, row
    except ValueError as error:
        yield number + 1, Problem(str(error), path, number + 1 if number else None)


_SCANNERS: dict[Format, Callable[[BinaryIO, Path], Iterator[tuple[int, Row | Problem]]]] = {
    "jsonl": _scan_jsonl,
    "json": _scan_json,
    "csv": _scan_csv,
    "parquet": _scan_parquet,
    "arrow": _scan_arrow,
}


def _lines(file: BinaryIO) -> Iterator[str]:
    first = True
    for line in file:
        yield (line.removeprefix(codecs.BOM_UTF8) if first else line).decode()
        first = False


def _object(value: Any, path: Path, line: int) -> Row | Problem:
    if isinstance(value, dict):
        return cast("Row", value)
    if isinstance(value, list):
        return Problem('a row is an object {…}, got list; write a list of messages as {"messages": […]}', path, line)
    return Problem(f"a row is an object {{…}}, got {type(value).__name__}", path, line)


def _csv_row(header: list[str], cells: list[str], path: Path, line: int) -> Row | Problem:
    if len(cells) != len(header):
        return Problem(f"this row has {len(cells)} cells and the header has {len(header)}", path, line)
    return {column: cell or None for column, cell in zip(header, cells, strict=True)}


def _wrong_header(header: list[str]) -> str | None:
    if not all(header):
        return f"column {header.index('') + 1} of the header has no name"
    twice = next((name for name in header if header.count(name) > 1), None)
    return f"the header names the column '{twice}' twice" if twice else None


def _not_utf8(error: UnicodeDecodeError, path: Path, line: int) -> Problem:
    byte = error.object[error.start]
    return Problem(f"not UTF-8: byte 0x{byte:02x} cannot be read; save the file as UTF-8", path, line)
