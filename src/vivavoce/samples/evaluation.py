"""`EvaluationDataset`, with its `SingleTurnSample`s or `MultiTurnSample`s: rows, files, and frames without a loss.

Source of the fields: https://docs.ragas.io/en/stable/concepts/components/eval_sample/

Ragas knows messages of a person, of the assistant and of tools, each a text; anything else is refused. Reading such a
row here returns the sample; what was null in the content of a message comes back as the empty text.

In CSV and Parquet a text is a cell and everything else is JSON text in a cell; `vivavoce.samples.table` says how an
empty text differs from no text. In a frame, lists and objects are Python's own.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_args, overload

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Row
from vivavoce.conversations.shapes import Message, arguments_of, fields_in, name_of, text_of
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
from vivavoce.files.rows import Format, format_of, read_rows
from vivavoce.messages import AIMessage, AnyMessage, Messages, TextPart, ToolCall, ToolMessage, describe, pretty
from vivavoce.samples.table import ArrowTable, json_cell, read_text, text_cell

if TYPE_CHECKING:
    from pandas import DataFrame
    from polars import DataFrame as PolarsFrame


Rubrics = Annotated[dict[str, str] | None, Field(validation_alias=AliasChoices("rubrics", "rubric"))]


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


DocumentId = Annotated[int | str, BeforeValidator(_whole_number)]


class _Sample(BaseModel):
    """The common part of both kinds: immutable, no unknown fields, readable."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="constants")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that were given, as plain JSON types."""
        return self.model_dump(mode="json", exclude_unset=True)

    def get_features(self) -> list[str]:
        """Return the names of the fields that hold something."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    def to_string(self) -> str:
        """Return the fields that hold something as text, each below its name, laid out as Ragas does."""
        fields = self.to_dict()
        return "".join(f"\n{name}:\n\t{fields[name]}\n" for name in self.get_features())

    def pretty_repr(self) -> str:
        """Return the sample as readable text."""
        rows = ((name, getattr(self, name)) for name in self.get_features())
        return "\n".join(f"{name}: {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        """Show the sample in a notebook; every text is escaped."""
        return f"<pre style='white-space:pre-wrap'>{escape(self.pretty_repr())}</pre>"


class SingleTurnSample(_Sample):
    """One question, one answer, and what is known about the right one."""

    user_input: str | None = None
    retrieved_contexts: list[str] | None = None
    reference_contexts: list[str] | None = None
    retrieved_context_ids: list[DocumentId] | None = None
    reference_context_ids: list[DocumentId] | None = None
    response: str | None = None
    multi_responses: list[str] | None = None
    reference: str | None = None
    rubrics: Rubrics = None
    persona_name: str | None = None
    query_style: str | None = None
    query_length: str | None = None

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if not self.get_features():
            raise ValueError("a sample needs at least user_input")
        return self


class MultiTurnSample(_Sample):
    """A conversation between a person, an assistant and its tools, and what is known about the right outcome.

    Raises:
        ValidationError: a message is empty or out of place; the text names the message's index, counted from 0.
    """

    user_input: Messages
    reference: str | None = None
    reference_tool_calls: list[ToolCall] | None = None
    rubrics: Rubrics = None
    reference_topics: list[str] | None = None

    @field_validator("user_input")
    @classmethod
    def _in_order(cls, messages: list[AnyMessage]) -> list[AnyMessage]:
        check_order(messages)
        return messages

    def to_messages(self) -> list[dict[str, Any]]:
        """Return the conversation as plain dicts in the wire shape."""
        return [message.to_dict() for message in self.user_input]

    def pretty_repr(self) -> str:
        """Return the conversation as readable lines, then what is known about it."""
        rest = [f"{name}: {getattr(self, name)}" for name in self.get_features() if name != "user_input"]
        return "\n".join([pretty(self.user_input), *(["---", *rest] if rest else [])])


def check_order(messages: Sequence[AnyMessage]) -> None:
    """Check that a conversation is possible: nothing empty, every tool message answers a call.

    A tool may return nothing; a person or an assistant who says nothing and calls nothing is an error. Ids are matched
    where both sides give one; without ids, as many results may follow as calls are open.

    Raises:
        ValueError: the text names the index of the message, counted from 0.
    """
    if not messages:
        raise ValueError("a conversation needs at least one message")
    open_calls: list[ToolCall] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            _answer(open_calls, message, index)
            continue
        if _is_empty(message):
            raise ValueError(f"message {index} ({message.role}) is empty: it has no content{_or_call(message)}")
        open_calls = list(message.tool_calls or ()) if isinstance(message, AIMessage) else []


def _answer(open_calls: list[ToolCall], message: ToolMessage, index: int) -> None:
    if not open_calls:
        raise ValueError(f"message {index} (tool) must follow an assistant message with a tool call still unanswered")
    call_id = message.tool_call_id
    if call_id is None or all(call.id is None for call in open_calls):
        open_calls.pop(0)
        return
    match = next((call for call in open_calls if call.id == call_id), None)
    if match is None:
        ids = ", ".join(str(call.id) for call in open_calls)
        raise ValueError(f"message {index} (tool) answers call '{call_id}', but the open calls are: {ids}")
    open_calls.remove(match)


def _is_empty(message: AnyMessage) -> bool:
    if isinstance(message, AIMessage) and (message.tool_calls or message.refusal or message.model_extra):
        return False
    return not (message.content.strip() if isinstance(message.content, str) else message.content)


def _or_call(message: AnyMessage) -> str:
    return " and no tool call" if isinstance(message, AIMessage) else ""


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


def ragas_row(sample: EvaluationSample) -> dict[str, Any]:
    """Return a sample as plain JSON types that Ragas, from 0.2 on, reads as the same sample.

    Raises:
        ValueError: it holds something that Ragas has no place for.
    """
    row = filled_row(sample)
    if isinstance(sample, MultiTurnSample):
        row["user_input"] = [_message(message, index) for index, message in enumerate(sample.user_input)]
        if sample.reference_tool_calls is not None:
            row["reference_tool_calls"] = [ragas_call(call.to_dict()) for call in sample.reference_tool_calls]
    return row


def _message(message: AnyMessage, index: int) -> dict[str, Any]:
    if message.role not in TYPES:
        raise ValueError(f"message {index} ({message.role}): Ragas has no such message; leave it out for Ragas")
    content = message.content
    if isinstance(content, list) and not all(isinstance(part, TextPart) for part in content):
        raise ValueError(f"message {index} ({message.role}): Ragas supports only text messages")
    keys = message.to_dict()
    if "type" in keys:
        raise ValueError(
            f"message {index} ({message.role}): has a key 'type' of its own, which Ragas reads as the role"
        )
    return ragas_message(keys)


T = TypeVar("T")
FilePath = str | os.PathLike[str]

Dialect = Literal["openai", "ragas"]
"""How messages are written: in the shape of OpenAI's wire, or so that Ragas, from 0.2 on, reads them."""

_ROWS_SHOWN = 10
_CHARACTERS_SHOWN = 200


@dataclass(frozen=True, init=False, repr=False)
class EvaluationDataset:
    """Samples, all single-turn or all multi-turn, in order.

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
        """Whether the samples are conversations; false when there are none."""
        return bool(self.samples) and isinstance(self.samples[0], MultiTurnSample)

    def features(self) -> list[str]:
        """Return the names of the fields that any sample has."""
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
        """Return the samples as dicts of plain JSON types, each with the fields it has, in a `Dialect`."""
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
            UsageError: a column would mix types, which only our Parquet files allow.
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
    short_texts = (f"{text[:_CHARACTERS_SHOWN]}…" if len(text) > _CHARACTERS_SHOWN else text for text in texts)
    return "".join(f"<td>{escape(text)}</td>" for text in short_texts)


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


TYPES = {"user": "human", "assistant": "ai", "tool": "tool"}
"""The type of the message of each role."""
OLD_NAMES = {
    "question": "user_input",
    "answer": "response",
    "contexts": "retrieved_contexts",
    "ground_truth": "reference",
}
"""What Ragas 0.1 called columns."""


def new_name(column: str, row: Mapping[str, Any]) -> str:
    """Return the name of a column, for that of Ragas 0.1 the later one, unless the row has both."""
    name = OLD_NAMES.get(column, column)
    return column if name in row else name


def ragas_message(message: Message) -> Row:
    """Return a message of a person, the assistant or a tool as Ragas reads it.

    Raises:
        ValueError: the arguments of a call are not a JSON object.
    """
    row = {key: value for key, value in message.items() if key != "role"}
    row |= {"content": text_of(message.get("content")), "type": TYPES[message["role"]]}
    if message.get("tool_calls") is not None:
        row["tool_calls"] = [ragas_call(call) for call in message["tool_calls"]]
    return row


def ragas_call(call: Row) -> Row:
    """Return a call as Ragas reads it.

    Raises:
        ValueError: its arguments are not a JSON object.
    """
    args: Any = arguments_of(call)
    if not isinstance(args, dict):
        given = str(fields_in(call.get("function")).get("arguments"))
        raise ValueError(f"arguments of {name_of(call)} are not a JSON object: {given[:80]}")
    others = {key: value for key, value in call.items() if key not in ("type", "function")}
    return {**others, "name": name_of(call), "args": args}
