"""One row of a file, a table or a list, and the evaluation sample that it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.exchange.ragas import OLD_NAMES, new_name
from vivavoce.files.rows import Format, format_of, read_rows
from vivavoce.messages import describe
from vivavoce.samples.cells import json_cell, read_text, text_cell
from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample

EvaluationSample = SingleTurnSample | MultiTurnSample

_COLUMNS = {*SingleTurnSample.model_fields, *MultiTurnSample.model_fields, "rubric"}
_TEXTS = frozenset(("user_input", "response", "reference", "persona_name", "query_style", "query_length"))


def read_row(row: Mapping[str, Any]) -> EvaluationSample:
    """Read a row as a sample: a conversation when `user_input` is a list. None is a cell that is missing.

    Raises:
        ValueError: in one line, what is wrong.
    """
    row = {new_name(column, row): value for column, value in row.items()}
    unknown = next((column for column in row if column not in _COLUMNS), None)
    if unknown is not None:
        raise ValueError(f"unknown column '{unknown}'{did_you_mean(unknown, _COLUMNS)}")
    values = {column: value for column, value in row.items() if value is not None}
    kind = MultiTurnSample if isinstance(values.get("user_input"), list) else SingleTurnSample
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def read_file(path: Path, format: Format | None = None) -> Iterator[EvaluationSample]:  # noqa: A002
    """Yield the samples of a file, in constant memory.

    Raises:
        UsageError: the file cannot be read, or a row is not a sample or of another kind than the first.
    """
    table = (format or format_of(path)) in ("csv", "parquet", "arrow")
    first = None
    for line, row in read_rows(path, format):
        try:
            sample = read_row(_from_cells(row) if table else row)
            first = first or sample
            check_kind(sample, first)
        except ValueError as error:
            raise UsageError(Problem(str(error), path, line)) from error
        yield sample


def read_list(rows: Iterable[Mapping[str, Any]]) -> Iterator[EvaluationSample]:
    """Yield the samples of rows that hold Python's own lists and dicts.

    Raises:
        UsageError: a row is not a sample; it names the index.
    """
    for index, row in enumerate(rows):
        try:
            yield read_row(row)
        except ValueError as error:
            raise UsageError(f"sample {index}: {error}") from error


def check_kind(sample: EvaluationSample, first: EvaluationSample) -> None:
    """Check that a sample is of the kind of the first.

    Raises:
        ValueError: it is not, or it is not a sample at all.
    """
    if not isinstance(sample, SingleTurnSample | MultiTurnSample):  # pyright: ignore[reportUnnecessaryIsInstance]
        rule = "a SingleTurnSample or a MultiTurnSample is needed; dicts are read by EvaluationDataset.from_list(rows)"
        raise ValueError(f"is a {type(sample).__name__}; {rule}")
    if type(sample) is not type(first):
        raise ValueError(f"is a {type(sample).__name__} in a dataset that begins with a {type(first).__name__}")


def filled_row(sample: EvaluationSample) -> dict[str, Any]:
    """Return a sample as plain JSON types, with the fields that it holds."""
    return {name: value for name, value in sample.to_dict().items() if value is not None}


def table_row(sample: EvaluationSample, *, empty_is_nothing: bool) -> dict[str, str | None]:
    """Return a sample as the cells of a table; `empty_is_nothing` says that an empty cell is read as a missing one.

    Raises:
        ValueError: it holds something that JSON does not have.
    """
    return {
        name: text_cell(value, lists=name == "user_input", empty_is_nothing=empty_is_nothing)
        if isinstance(value, str)
        else json_cell(value)
        for name, value in filled_row(sample).items()
    }


def _from_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    return {column: _from_cell(column, cell) if isinstance(cell, str) else cell for column, cell in row.items()}


def _from_cell(column: str, cell: str) -> Any:
    column = OLD_NAMES.get(column, column)
    if column in _TEXTS or column not in _COLUMNS:
        return read_text(cell, lists=column == "user_input")
    try:
        return parse(cell)
    except BrokenJson as error:
        raise ValueError(f"column '{column}' holds JSON, and this cell is {error}") from error
