"""Parquet and Arrow files, pandas, polars and Hugging Face datasets, through extras; imported when they are used."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vivavoce.errors import MissingExtra

if TYPE_CHECKING:
    from pandas import DataFrame

Columns = Mapping[str, Sequence[object]]
"""The cells of each column, None for a missing one."""

_ARROW_FILE = b"ARROW1"

ROWS_AT_ONCE = 1024
"""How many rows are in memory while a Parquet file is read or written."""


def load_extra(module: str, what: str, extra: str = "frames") -> Any:
    """Return a module of an extra; `what` says what needs it.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(what, extra) from error


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as plain JSON types.

    Dates and times become ISO text, decimals their digits, and a number that is not one (NaN) None: Parquet writers use
    it for a missing cell. Within a cell, what is null is left out: Arrow gives all objects of a column the same keys.

    Raises:
        MissingExtra: pyarrow is not installed.
        ValueError: the file is not Parquet, or a column holds what JSON cannot.
    """
    arrow, parquet = load_extra("pyarrow", "reading Parquet"), load_extra("pyarrow.parquet", "reading Parquet")
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                yield from map(_arrow_row, batch.to_pylist())
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def arrow_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of an Arrow file as `parquet_rows` does; it is a stream, as Hugging Face saves, or a file.

    Raises:
        MissingExtra: pyarrow is not installed.
        ValueError: the file is not Arrow, or a column holds what JSON cannot.
    """
    arrow, ipc = load_extra("pyarrow", "reading Arrow"), load_extra("pyarrow.ipc", "reading Arrow")
    try:
        with arrow.memory_map(str(path)) as source:
            is_file = source.read(len(_ARROW_FILE)) == _ARROW_FILE
            source.seek(0)
            for batch in _file_batches(ipc.open_file(source)) if is_file else ipc.open_stream(source):
                yield from map(_plain_row, batch.to_pylist())
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"cannot be read as Arrow: {str(error).splitlines()[0]}") from error


def _file_batches(file: Any) -> Iterator[Any]:
    return (file.get_batch(number) for number in range(file.num_record_batches))


def write_parquet(
    path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]], types: Mapping[str, str] | None = None
) -> None:
    """Write rows as a Parquet file; a column holds text unless `types` gives it another type of Arrow by its name.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow, parquet = load_extra("pyarrow", "writing Parquet"), load_extra("pyarrow.parquet", "writing Parquet")
    types_by_column = {**dict.fromkeys(columns, "string"), **(types or {})}
    schema = arrow.schema([(column, arrow.type_for_alias(name)) for column, name in types_by_column.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        for part in _parts(rows):
            writer.write_batch(arrow.RecordBatch.from_pylist(part, schema=schema))


def frame_of(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return rows as a frame of Python objects; None marks what a row does not have.

    Raises:
        MissingExtra: pandas is not installed.
    """
    pandas = load_extra("pandas", "a pandas frame")
    cells = [[row.get(column) for column in columns] for row in rows]
    return cast("DataFrame", pandas.DataFrame(cells, columns=list(columns), dtype=object))


def frame_rows(frame: DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a frame as plain JSON types; whatever pandas counts as missing is None."""
    pandas = load_extra("pandas", "a pandas frame")
    columns = [str(column) for column in frame.columns]
    for cells in frame.itertuples(index=False, name=None):
        values = (None if pandas.api.types.is_scalar(cell) and pandas.isna(cell) else cell for cell in cells)
        yield _plain_row(dict(zip(columns, values, strict=True)))


def hf_dataset(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a `datasets.Dataset`, whose objects and lists are Arrow's own.

    Raises:
        MissingExtra: datasets is not installed.
        ValueError: a column holds values of several types, which Arrow does not mix.
    """
    datasets, arrow = (
        load_extra("datasets", "a Hugging Face dataset", "hf"),
        load_extra("pyarrow", "a Hugging Face dataset", "hf"),
    )
    try:
        return datasets.Dataset.from_dict({column: [row.get(column) for row in rows] for column in columns})
    except arrow.ArrowException as error:
        raise ValueError(f"Arrow does not mix types within a column: {str(error).splitlines()[0]}") from error


def hf_rows(dataset: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one split of a Hugging Face dataset, or of one that streams, as `parquet_rows` does.

    Raises:
        ValueError: it is not such a thing, or a column holds what JSON cannot.
    """
    for row in dataset:
        if not isinstance(row, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"expected one split of a dataset, such as dataset['train']; got {type(dataset).__name__}")
        yield _arrow_row(row)


def pandas_table(columns: Columns, types: Mapping[str, str]) -> DataFrame:
    """Return columns of Arrow's types as a frame whose types know a missing cell.

    Raises:
        MissingExtra: pandas is not installed.
    """
    pandas = load_extra("pandas", "a pandas frame")
    cells = {name: pandas.array(column, dtype=_IN_PANDAS[types[name]]) for name, column in columns.items()}
    return cast("DataFrame", pandas.DataFrame(cells, columns=list(columns)))


def arrow_table(columns: Columns, types: Mapping[str, str]) -> Any:
    """Return columns of Arrow's types as a `pyarrow.Table`.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow = load_extra("pyarrow", "an Arrow table")
    return arrow.table({name: arrow.array(cells, arrow.type_for_alias(types[name])) for name, cells in columns.items()})


def polars_table(columns: Columns, types: Mapping[str, str]) -> Any:
    """Return columns of Arrow's types as a `polars.DataFrame`.

    Raises:
        MissingExtra: polars is not installed.
    """
    polars = load_extra("polars", "a polars frame", "polars")
    return polars.DataFrame(columns, schema={name: getattr(polars, _IN_POLARS[types[name]]) for name in columns})


def unpack_zstandard(data: bytes, size: int) -> bytes:
    """Return what was compressed with Zstandard, at most one byte more than `size`; Python can this from 3.14 on.

    Raises:
        MissingExtra: pyarrow is not installed.
        OSError: the data are damaged.
    """
    arrow = load_extra("pyarrow", "reading archives that are compressed with Zstandard")
    with arrow.input_stream(BytesIO(data), compression="zstd") as stream:
        return stream.read(size + 1)


_IN_PANDAS = {"string": "string", "int32": "Int32", "int64": "Int64", "double": "Float64", "bool": "boolean"}
_IN_POLARS = {"string": "String", "int32": "Int32", "int64": "Int64", "double": "Float64", "bool": "Boolean"}
"""By Arrow's names of types, those of the others."""


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {column: _plain(value, column) for column, value in row.items()}


def _arrow_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {column: _without_nulls(value) for column, value in _plain_row(row).items()}


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _without_nulls(inner) for key, inner in items if inner is not None}
        case list():
            return [_without_nulls(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def _plain(value: Any, column: str) -> Any:
    match value:
        case None | str() | bool() | int():
            return value
        case float():
            return None if math.isnan(value) else value
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case Decimal():
            return str(value)
        case Mapping():
            return {str(key): _plain(inner, column) for key, inner in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [_plain(inner, column) for inner in cast("Sequence[Any]", value)]
        case _ if hasattr(value, "tolist"):  # numpy's arrays and numbers
            return _plain(value.tolist(), column)
        case _:
            raise ValueError(f"column '{column}' holds {type(value).__name__}, which JSON cannot hold")


def _parts(rows: Iterable[Mapping[str, object]]) -> Iterator[list[Mapping[str, object]]]:
    remaining = iter(rows)
    while part := list(islice(remaining, ROWS_AT_ONCE)):
        yield part
