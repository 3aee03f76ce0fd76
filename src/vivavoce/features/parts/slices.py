"""The rows of a part as a file of their own, which a suite reads like any other."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.features.parts.inputs import InputFile, Piece
from vivavoce.features.parts.job import Part
from vivavoce.files.frames import load_extra
from vivavoce.files.places import open_place


@dataclass(slots=True)
class Slicer:
    """Writes the rows of parts into files of this machine.

    A row group of Parquet can be read only from its beginning, so that of the last part stays open: parts that come in
    their order read it once.
    """

    _group: _Group | None = field(default=None, init=False)

    def write(self, part: Part, path: Path) -> None:
        """Write the rows of a part to a path, whole or not at all.

        Raises:
            UsageError: the file of the part cannot be read, or has fewer rows than it had.
            OSError: the path cannot be written.
        """
        beside = path.with_name(f".{path.name}.part")
        if part.file.suffix == ".parquet":
            self._write_parquet(part.file, part.piece, beside)
        else:
            _write_lines(part.file, part.piece, beside)
        os.replace(beside, path)

    def close(self) -> None:
        """Close the file that stayed open."""
        if self._group is not None:
            self._group.close()
            self._group = None

    def _write_parquet(self, file: InputFile, piece: Piece, path: Path) -> None:
        arrow, parquet = load_extra("pyarrow", "reading Parquet"), load_extra("pyarrow.parquet", "writing Parquet")
        try:
            group = self._group
            if group is None or not group.has(file, piece):
                self.close()
                self._group = group = _Group(file, piece.at)
            rows = group.rows(piece)
        except (arrow.ArrowException, OSError) as error:
            self.close()
            raise UsageError(f"{file.place}: cannot be read: {str(error).splitlines()[0]}") from error
        parquet.write_table(rows, path, compression="zstd")


class _Group:
    """A row group of a Parquet file, read from its beginning on."""

    def __init__(self, file: InputFile, number: int) -> None:
        self._file, self._number, self._read = file, number, 0
        self._open = ExitStack()
        try:
            parquet = load_extra("pyarrow.parquet", "reading Parquet")
            opened = self._open.enter_context(open_place(file.place))
            content = self._open.enter_context(parquet.ParquetFile(opened))
            self._tables: Iterator[Any] = self._batches(content)
        except BaseException:
            self._open.close()
            raise
        self._left: list[Any] = []

    def has(self, file: InputFile, piece: Piece) -> bool:
        """Return whether a piece is of this group and still to come."""
        return (file.place, piece.at) == (self._file.place, self._number) and piece.skip >= self._read

    def rows(self, piece: Piece) -> Any:
        """Return the rows of a piece as a table of Arrow."""
        arrow = load_extra("pyarrow", "reading Parquet")
        self._take(piece.skip - self._read)
        return arrow.Table.from_batches(self._take(piece.rows))

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def _batches(self, content: Any) -> Iterator[Any]:
        yield from content.iter_batches(batch_size=1024, row_groups=[self._number])

    def _take(self, number: int) -> list[Any]:
        """Return this many rows as batches; they are the next ones."""
        taken: list[Any] = []
        while number:
            if not self._left:
                batch = next(self._tables, None)
                if batch is None:
                    raise UsageError(f"{self._file.place}: has fewer rows than when it was divided")
                self._left.append(batch)
            batch = self._left.pop()
            if batch.num_rows > number:
                self._left.append(batch.slice(number))
                batch = batch.slice(0, number)
            taken.append(batch)
            number -= batch.num_rows
            self._read += batch.num_rows
        return taken


def _write_lines(file: InputFile, piece: Piece, path: Path) -> None:
    with open_place(file.place) as opened, path.open("wb") as out:
        opened.seek(piece.at)
        left, rest = piece.rows, b""
        while left and (chunk := opened.read(1 << 20)):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            out.writelines(line + b"\n" for line in lines[:left])
            left -= min(left, len(lines))
        if left and rest:
            out.write(rest + b"\n")
            left -= 1
    if left:
        raise UsageError(f"{file.place}: has fewer rows than when it was divided")


def write_without(path: Path, rows: Collection[int], to: Path) -> None:
    """Write the file of a part without some rows, which count from 1, to another path, whole or not at all."""
    beside = to.with_name(f".{to.name}.part")
    if path.suffix == ".parquet":
        parquet = load_extra("pyarrow.parquet", "reading Parquet")
        table = parquet.read_table(path)
        left = [at for at in range(table.num_rows) if at + 1 not in rows]
        parquet.write_table(table.take(left), beside, compression="zstd")
    else:
        with path.open("rb") as file, beside.open("wb") as out:
            out.writelines(line for number, line in enumerate(file, 1) if number not in rows)
    os.replace(beside, to)
