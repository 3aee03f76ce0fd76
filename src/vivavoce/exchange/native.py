"""Our own rows: the datasets of suites, and conversations for `viva judge`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.exchange.format import ROW_FIELDS, Format, Row
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.records import Place, Record, scan_records
from vivavoce.exchange.sessions import with_sessions_joined
from vivavoce.files.rows import format_of
from vivavoce.messages import Message, read_messages

_ROLES = ("system", "developer", "user", "assistant", "tool")
_ASKED = frozenset(("input", "prompt", "user_input", "goal"))
OTHER_NAMES = frozenset(
    (
        *(
            "sample_id",
            "prompt",
            "reference",
            "user_input",
            "response",
            "multi_responses",
            "rubrics",
            "rubric_path",
            "policy_path",
        ),
        *("retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids"),
        *("reference_topics", "persona_name", "query_style", "query_length", "prompt_content", "expected_response"),
        *("test_type", "test_configuration", "restrictions", "instruction", "expected"),
    )
)
"""What fields of a row are called in letta-evals, Ragas and Rhesis, whose rows are read as ours."""
_CONVERSED = ("messages", *sorted(_ASKED), "sessions", "prompt_content", "test_configuration")
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_PARTS = ("text", "image_url", "input_audio", "file", "refusal")


def is_native(value: Any) -> bool:
    """Return whether a record is a row of ours and nothing in it speaks for another format."""
    if not isinstance(value, Mapping):
        return False
    row = cast("Mapping[str, Any]", value)
    messages = row.get("messages")
    if messages is None:
        return any(_is_asked(row.get(key)) for key in _ASKED) or _are_sessions(row.get("sessions"))
    return isinstance(messages, list) and all(map(is_native_message, cast("list[Any]", messages)))


def _is_asked(value: Any) -> bool:
    """Return whether a value is what a row may ask: a text, or texts and messages of a user one after the other."""
    if not isinstance(value, list):
        return isinstance(value, str) or is_native_message(value)
    return all(
        not isinstance(one, Mapping) or (cast("Row", one).get("role") == "user" and is_native_message(one))
        for one in cast("list[Any]", value)
    )


def _are_sessions(value: Any) -> bool:
    """Return whether a value is what a row of several sessions has of them."""
    if not isinstance(value, list):
        return False
    sessions = cast("list[Any]", value)
    return bool(sessions) and all(isinstance(one, Mapping) and is_native(one) for one in sessions)


def is_native_message(value: Any) -> bool:
    """Return whether a value is a message of ours, in plain data."""
    if not isinstance(value, Mapping):
        return False
    message = cast("Mapping[str, Any]", value)
    content = message.get("content")
    if message.get("role") not in _ROLES or "parts" in message:
        return False
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return all(isinstance(part, Mapping) and cast("Row", part).get("type") in _PARTS for part in parts)
    return content is None or isinstance(content, str)


def conversation_problem(row: Row) -> str | None:
    """Say why a row is not a conversation and does not ask for one, None where it is or does."""
    messages: object = row.get("messages")
    if messages is None or messages == []:
        asks = any(row.get(key) not in (None, "", []) for key in _CONVERSED if key != "messages")
        return None if asks else "a row needs messages, or an input to ask"
    if not isinstance(messages, list):
        return f"the messages of a row are a list, not {type(messages).__name__}"
    try:
        read_messages(cast("list[Row]", messages))
    except ValueError as error:
        return str(error)
    return None


def check_columns(path: Path, loss: Loss, fields: Iterable[str] = ()) -> None:
    """Look at the columns of a table of rows of ours, and tell the report which of them are unknown.

    `fields` are those that the caller has named columns for.

    Raises:
        UsageError: none can be a conversation, or what is asked; or the table cannot be opened.
    """
    if format_of(path) not in ("csv", "parquet", "arrow"):
        return
    first = next(iter(scan_records(path)), None)
    if not isinstance(first, Record) or first.fields is None:
        return  # nothing is in it, or it is broken, which is told where it is read
    columns = first.fields.keys()
    if columns.isdisjoint(_CONVERSED) and not {*fields} & {*_CONVERSED}:
        rule = "no column can be a message, a turn or an input"
        hint = "name those of a table with a message in each row: --field content=COLUMN --field role=COLUMN"
        other = f"or call a column one of {', '.join(_CONVERSED[:-2])}"
        problem = _delimiter_problem(columns) or f"{rule}; there are: {', '.join(columns)}; {hint}; {other}"
        raise UsageError(Problem(problem, path))
    loss.stands_at(Place(path, 1))
    for column in columns:
        if column not in ROW_FIELDS and column not in OTHER_NAMES:
            loss.unknown(column)


def _delimiter_problem(columns: Collection[str]) -> str:
    """Return that the cells of a table are not separated by commas, in words; empty where they seem to be."""
    header = next(iter(columns), "")
    mark = next((mark for mark in _OTHER_DELIMITERS if mark in header), None)
    if len(columns) != 1 or mark is None:
        return ""
    names = ", ".join(name.strip() for name in header.split(mark))
    rule = f"the cells are separated by {_OTHER_DELIMITERS[mark]}, and a CSV file needs commas"
    return f"{rule}: save it again with commas; the columns would be: {names}"


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        if record.fields is None:
            loss.broken("a row must be an object {…}")
        else:
            try:
                yield record.place, _with_recorded_sessions(record.fields)
            except ValueError as error:
                loss.broken(str(error))


def _with_recorded_sessions(row: Row) -> Row:
    """Return a row whose recorded sessions are one list of messages; one that is still to be asked as it is."""
    joined = with_sessions_joined(row)
    if joined is row or "messages" not in joined:
        return row
    return {**joined, "messages": [message.to_dict() for message in cast("list[Message]", joined["messages"])]}


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Row]:
    return iter(rows)


FORMAT = Format("vivavoce", "our own rows", lambda record: is_native(record.value), _read, _write)
