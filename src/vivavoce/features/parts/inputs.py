"""The files of a dataset that is worked on in parts, and where each part begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.errors import UsageError
from vivavoce.files.frames import load_extra
from vivavoce.files.places import FoundFile, find_files, open_place

PART_ROWS = 4_096
"""Rows of a part: so many that beginning a part costs little next to them, so few that one is soon made again."""
PART_BYTES = 64_000_000
"""About the most bytes of a part, which is in memory while it is worked on."""
_CHUNK = 1 << 22


class Piece(BaseModel):
    """Rows of a file: `rows` of them from `first` on, counted from 0, each of which is a line in a JSONL file.

    `at` is where they begin: the byte of their first line, or in Parquet the number of their row group.
    """

    model_config = ConfigDict(frozen=True)

    first: int
    rows: int
    at: int
    skip: int = 0
    """In Parquet, how many rows of the group come before them."""


class InputFile(BaseModel):
    """A file of the dataset; `problem` says why nothing of it can be read."""

    model_config = ConfigDict(frozen=True)

    place: str
    size: int
    changed: float | None = None
    pieces: list[Piece] = Field(default_factory=list[Piece])
    problem: str | None = None

    @property
    def suffix(self) -> str:
        """The ending of its name, which says its format."""
        return PurePosixPath(self.place.partition("?")[0]).suffix.lower()

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(piece.rows for piece in self.pieces)


def input_files(patterns: Iterable[str], rows: int = PART_ROWS) -> list[InputFile]:
    """Return the files that fit the patterns, each once, divided into pieces of at most this many rows.

    A file that is broken has a problem and no pieces.

    Raises:
        UsageError: no file fits a pattern, or one is neither Parquet nor JSONL.
        MissingExtra: pyarrow is not installed.
    """
    found = {file.place: file for pattern in patterns for file in find_files(pattern)}
    return [divided(one, rows) for one in found.values()]


def divided(file: FoundFile, rows: int = PART_ROWS) -> InputFile:
    """Return a file with its pieces.

    Raises:
        UsageError: it is neither Parquet nor JSONL.
    """
    known = InputFile(place=file.place, size=file.size, changed=file.changed)
    if known.suffix not in _PIECES:
        raise UsageError(
            f"{file.place}: only Parquet and JSONL can be processed in parts; convert the file with: viva convert"
        )
    try:
        return known.model_copy(update={"pieces": list(_PIECES[known.suffix](file, rows))})
    except (UsageError, ValueError, OSError) as error:
        return known.model_copy(update={"problem": str(error)})


def _of_parquet(file: FoundFile, rows: int) -> Iterator[Piece]:
    arrow, parquet = load_extra("pyarrow", "reading Parquet"), load_extra("pyarrow.parquet", "reading Parquet")
    first = 0
    try:
        with open_place(file.place) as opened, parquet.ParquetFile(opened) as content:
            groups = [content.metadata.row_group(at) for at in range(content.metadata.num_row_groups)]
    except arrow.ArrowException as error:
        raise ValueError(f"cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    for at, group in enumerate(groups):
        most = _most_rows(group, rows)
        for skip in range(0, group.num_rows, most):
            piece = Piece(first=first, rows=min(most, group.num_rows - skip), at=at, skip=skip)
            yield piece
            first += piece.rows


def _most_rows(group: Any, rows: int) -> int:
    """Return how many rows of a row group a piece has at most."""
    each = group.total_byte_size / max(1, group.num_rows)
    return max(1, min(rows, int(PART_BYTES / max(1.0, each))))


def _of_jsonl(file: FoundFile, rows: int) -> Iterator[Piece]:
    first, lines, start, size = 0, 0, 0, 0
    with open_place(file.place) as opened:
        for line in _lines(opened):
            lines, size = lines + 1, size + line
            if lines == rows or size >= PART_BYTES:
                yield Piece(first=first, rows=lines, at=start)
                first, lines, start, size = first + lines, 0, start + size, 0
    if lines:
        yield Piece(first=first, rows=lines, at=start)


def _lines(opened: Any) -> Iterator[int]:
    """Yield how many bytes each line has, with its end."""
    begun = 0
    while chunk := opened.read(_CHUNK):
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            yield begun + end + 1 - at
            begun, at = 0, end + 1
        begun += len(chunk) - at
    if begun:
        yield begun


_PIECES = {".parquet": _of_parquet, ".jsonl": _of_jsonl, ".ndjson": _of_jsonl}
