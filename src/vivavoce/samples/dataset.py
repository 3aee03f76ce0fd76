"""`EvaluationDataset`: samples of one kind, and their way into lists, files and frames and back, nothing lost.

In CSV and Parquet a text is a cell and everything else is JSON text in a cell; `vivavoce.samples.table` says how an
empty text differs from no text. In a frame, lists and objects are Python's own.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.files.frames import (
    arrow_table,
    frame_of,
    frame_rows,
    hf_dataset,
    hf_rows,
    polars_table,
    write_parquet,
)
from vivavoce.samples.evaluation import (
    EvaluationSample,
    MultiTurnSample,
    SingleTurnSample,
    check_kind,
    filled_row,
    ragas_row,
    read_file,
    read_list,
    table_row,
)
from vivavoce.samples.table import ArrowTable, json_cell

if TYPE_CHECKING:
    from pandas import DataFrame
    from polars import DataFrame as PolarsFrame

T = TypeVar("T")
FilePath = str | os.PathLike[str]

Dialect = Literal["openai", "ragas"]
"""How messages are written: in the shape of OpenAI's wire, or so that Ragas, from 0.2 on, reads them."""

_ROWS_SHOWN = 10
_CHARACTERS_SHOWN = 200


@dataclass(frozen=True, init=False, repr=False)
class EvaluationDataset:
    """Samples, all of one turn or all of several, in order.

    Every `from_…` reads what the `to_…` of that name writes and returns an equal dataset. A `UsageError` names the
    sample, counted from 0, or the file and line.
    """

    samples: tuple[EvaluationSample, ...]
    name: str | None

    def __init__(self, samples: Iterable[EvaluationSample] = (), name: str | None = None) -> None:
        object.__setattr__(self, "samples", tuple(samples))
        object.__setattr__(self, "name", name)
        self._each(lambda sample: check_kind(sample, self.samples[0]))

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[EvaluationSample]:
        return iter(self.samples)

    @overload
    def __getitem__(self, index: int) -> EvaluationSample: ...
    @overload
    def __getitem__(self, index: slice) -> EvaluationDataset: ...
    def __getitem__(self, index: int | slice) -> EvaluationSample | EvaluationDataset:
        if isinstance(index, slice):
            return EvaluationDataset(self.samples[index], self.name)
        return self.samples[index]

    @property
    def is_multi_turn(self) -> bool:
        """Whether the samples are conversations; not so when there are none."""
        return bool(self.samples) and isinstance(self.samples[0], MultiTurnSample)

    def features(self) -> list[str]:
        """Return the names of the fields that any sample holds."""
        names = {name for sample in self.samples for name in sample.get_features()}
        kind = MultiTurnSample if self.is_multi_turn else SingleTurnSample
        return [name for name in kind.model_fields if name in names]

    def __repr__(self) -> str:
        name = "" if self.name is None else f"name={self.name!r}, "
        return f"EvaluationDataset({name}features={self.features()}, len={len(self)})"

    def _repr_html_(self) -> str:
        """Show the first samples in a notebook; every text is escaped."""
        columns = self.features()
        head = "".join(f"<th>{escape(column)}</th>" for column in columns)
        body = "".join(f"<tr>{_html_cells(sample, columns)}</tr>" for sample in self.samples[:_ROWS_SHOWN])
        more = f"<p>… and {len(self) - _ROWS_SHOWN} more</p>" if len(self) > _ROWS_SHOWN else ""
        return f"<p>{escape(repr(self))}</p><table><tr>{head}</tr>{body}</table>{more}"

    @classmethod
    def from_list(cls, rows: Iterable[Mapping[str, Any]], name: str | None = None) -> EvaluationDataset:
        """Read dicts; one is a conversation when its `user_input` is a list."""
        return cls(read_list(rows), name)

    def to_list(self, dialect: Dialect = "openai") -> list[dict[str, Any]]:
        """Return the samples as dicts of plain JSON types, each with the fields it holds, in a `Dialect`."""
        return self._each(_row_of(dialect))

    @classmethod
    def from_jsonl(cls, path: FilePath, name: str | None = None) -> EvaluationDataset:
        """Read a JSONL file."""
        return cls(read_file(Path(path), "jsonl"), name)

    def to_jsonl(self, path: FilePath, dialect: Dialect = "openai") -> None:
        """Write a JSONL file, one sample a line, in a `Dialect`; an old file stays until the new one is whole."""
        row_of = _row_of(dialect)
        lines = self._each(lambda sample: json_cell(row_of(sample)))
        with _whole(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)

    @classmethod
    def from_csv(cls, path: FilePath, name: str | None = None) -> EvaluationDataset:
        """Read a CSV file."""
        return cls(read_file(Path(path), "csv"), name)

    def to_csv(self, path: FilePath) -> None:
        """Write a CSV file; an old file stays until the new one is whole."""
        columns = self._columns()
        rows = self._each(lambda sample: table_row(sample, empty_is_nothing=True))
        with _whole(path) as new, new.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([row.get(column) for column in columns] for row in rows)

    @classmethod
    def from_parquet(cls, path: FilePath, name: str | None = None) -> EvaluationDataset:
        """Read a Parquet file (needs the extra `[frames]`)."""
        return cls(read_file(Path(path), "parquet"), name)

    def to_parquet(self, path: FilePath) -> None:
        """Write a Parquet file (needs the extra `[frames]`); an old file stays until the new one is whole."""
        rows = self._each(lambda sample: table_row(sample, empty_is_nothing=False))
        with _whole(path) as new:
            write_parquet(new, self._columns(), rows)

    @classmethod
    def from_pandas(cls, frame: DataFrame, name: str | None = None) -> EvaluationDataset:
        """Read a frame (needs the extra `[frames]`); whatever pandas counts as missing is None."""
        return cls(read_list(frame_rows(frame)), name)

    def to_pandas(self) -> DataFrame:
        """Return a frame (needs the extra `[frames]`): a column for each feature, None where a sample has none."""
        return frame_of(self.features(), self.to_list())

    @classmethod
    def from_hf_dataset(cls, dataset: Iterable[Mapping[str, Any]], name: str | None = None) -> EvaluationDataset:
        """Read one split of a Hugging Face dataset; what is null within a cell is left out."""
        try:
            return cls(read_list(hf_rows(dataset)), name)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def to_hf_dataset(self) -> Any:
        """Return a `datasets.Dataset` (needs the extra `[hf]`); arguments of tool calls are JSON text in it.

        Raises:
            UsageError: a column would hold values of several types, which Parquet files made here can.
        """
        try:
            return hf_dataset(self._columns(), self.to_list())
        except ValueError as error:
            raise UsageError(f"{error}; to_parquet writes such samples, too") from error

    def to_polars(self) -> PolarsFrame:
        """Return a polars frame (needs the extra `[polars]`) with the cells that a Parquet file has."""
        columns = self._cells()
        return polars_table(columns, dict.fromkeys(columns, "string"))

    def to_arrow(self) -> ArrowTable:
        """Return an Arrow table (needs the extra `[frames]`) with the cells that a Parquet file has."""
        columns = self._cells()
        return arrow_table(columns, dict.fromkeys(columns, "string"))

    @staticmethod
    def stream(path: FilePath) -> Iterator[EvaluationSample]:
        """Yield the samples of a file one at a time, for files larger than memory; the suffix determines the format."""
        return read_file(Path(path))

    @staticmethod
    def stream_jsonl(path: FilePath) -> Iterator[EvaluationSample]:
        """Yield the samples of a JSONL file one at a time, for files larger than memory."""
        return read_file(Path(path), "jsonl")

    def _columns(self) -> list[str]:
        """The features; a table of nothing has the column that every sample would have."""
        return self.features() or ["user_input"]

    def _cells(self) -> dict[str, list[str | None]]:
        rows = self._each(lambda sample: table_row(sample, empty_is_nothing=False))
        return {column: [row.get(column) for row in rows] for column in self._columns()}

    def _each(self, work: Callable[[EvaluationSample], T]) -> list[T]:
        results: list[T] = []
        for index, sample in enumerate(self.samples):
            try:
                results.append(work(sample))
            except ValueError as error:
                raise UsageError(f"sample {index}: {error}") from error
        return results


def _row_of(dialect: str) -> Callable[[EvaluationSample], dict[str, Any]]:
    row_of = {"openai": filled_row, "ragas": ragas_row}.get(dialect)
    if row_of is None:
        raise UsageError(f"no dialect '{dialect}'{did_you_mean(dialect, get_args(Dialect))}")
    return row_of


def _html_cells(sample: EvaluationSample, columns: list[str]) -> str:
    row = filled_row(sample)
    values = (row.get(column, "") for column in columns)
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values)
    shown = (f"{text[:_CHARACTERS_SHOWN]}…" if len(text) > _CHARACTERS_SHOWN else text for text in texts)
    return "".join(f"<td>{escape(text)}</td>" for text in shown)


@contextmanager
def _whole(path: FilePath) -> Generator[Path]:
    """Give a file to write to; it takes its name when it is whole."""
    place = Path(path)
    new = place.with_name(f".{place.name}.partial")
    try:
        yield new
        new.replace(place)
    except OSError as error:
        raise UsageError(Problem(f"cannot be written: {error.strerror or error}", place)) from error
    finally:
        new.unlink(missing_ok=True)
