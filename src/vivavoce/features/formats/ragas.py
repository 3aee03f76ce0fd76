"""Ragas' samples: conversations in `user_input`, or a question with its `response`, and what is known about them.

Messages have a `type` and a text; calls have `name` and `args`. Ragas passes over keys that it does not know: ours
stand next to its own and come back. Columns of Ragas 0.1 are read by their names and written by those of 0.2. A file
holds samples of one kind, that of the first.
Source: `SingleTurnSample`, `MultiTurnSample` and `EvaluationDataset` of ragas 0.4, and what `to_jsonl` of it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Format, Loss, Place, Record, Row
from vivavoce.conversations.shapes import Message, Unreadable, arguments_of, fields_in, set_aside, taken_back, text_of
from vivavoce.messages import read_messages
from vivavoce.samples.evaluation import TYPES, new_name, ragas_call, ragas_message

NAME = "ragas"
_LISTS = (
    *("rubrics", "retrieved_contexts", "reference_contexts", "retrieved_context_ids", "reference_context_ids"),
    "multi_responses",
)
"""Columns that hold JSON in a table, not text."""
_OURS = (*_LISTS, "reference_topics", "persona_name", "query_style", "query_length")
"""Columns that are a part of the metadata here."""
_SINGLE = "single_turn"


def _without(row: Mapping[str, Any], *keys: str) -> Row:
    return {key: value for key, value in row.items() if key not in keys}


def _fits(record: Record) -> bool:
    row = record.fields or {}
    if "messages" in row:
        return False
    user_input = row.get("user_input")
    if not isinstance(user_input, list):
        return isinstance(row.get("question"), str) and "answer" in row and _is_list(row.get("contexts"))
    messages = [fields_in(entry) for entry in cast("list[Any]", user_input)]
    return all("content" in message for message in messages) and any(_is_message(message) for message in messages)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and value.startswith("["))


def _is_message(message: Row) -> bool:
    """Return whether it is a message of Ragas, or of ours in its place; a question to be asked is neither."""
    type_ = message.get("type")
    return message.get("role") in ("assistant", "tool") or ("role" not in message and type_ in TYPES.values())


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        loss.line, loss.conversation = record.place.line, None
        if record.fields is None:
            loss.add_broken("a sample must be an object {…}")
            continue
        fields = {new_name(key, record.fields): value for key, value in record.fields.items()}
        loss.at(fields)
        try:
            row = _conversation(fields) if isinstance(fields.get("user_input"), list) else _single_turn(fields)
        except Unreadable as error:
            loss.add_broken(str(error))
        else:
            yield record.place, row


def _conversation(fields: Row) -> Row:
    return {"messages": _messages(fields.pop("user_input")), **_known_columns(fields)}


def _single_turn(fields: Row) -> Row:
    question = fields.pop("user_input", None)
    if not isinstance(question, str):
        raise Unreadable("a sample needs a user_input: a text, or a list of messages")
    row = {key: _cell_value(key, value) for key, value in fields.items()}
    answer = row.get("response")
    if answer is None:
        return {"input": question, **_known_columns(row)}
    if not isinstance(answer, str):
        raise Unreadable(f"a response is a text, not {type(answer).__name__}")
    reply: Message = {"role": "assistant", "content": answer}
    if row.get("retrieved_contexts") is not None:
        reply["retrieval_context"] = row["retrieved_contexts"]
    set_aside(reply, NAME, {_SINGLE: True})
    messages = _messages([{"role": "user", "content": question}, reply])
    return {"messages": messages, **_known_columns(_without(row, "response", "retrieved_contexts"))}


def _cell_value(column: str, value: Any) -> Any:
    """Return the value of a column; of a cell of a table, which is text, the JSON that it holds."""
    if column not in _LISTS or not isinstance(value, str):
        return value
    try:
        return parse(value)
    except BrokenJson as error:
        raise Unreadable(f"column '{column}' must be JSON, but this cell is not; write JSONL or Parquet") from error


def _known_columns(fields: Row) -> Row:
    """Return the other columns of a sample by our names; what has none, the reader of rows judges."""
    row = dict(fields)
    if row.get("ground_truth") is None and row.get("reference") is not None:
        row["ground_truth"] = row.pop("reference")
    if isinstance(row.get("rubric"), Mapping):
        row.setdefault("rubrics", row.pop("rubric"))
    metadata: Any = row.get("metadata", {})
    if isinstance(metadata, dict):
        moved = {key: row.pop(key) for key in _OURS if key in row and key not in metadata}
        row |= {"metadata": {**cast("Row", metadata), **moved}} if moved else {}
    return row


def _messages(entries: list[Any]) -> list[Message]:
    """Return messages in our shape; their types and calls are spelled as `messages.py` reads them."""
    try:
        return [message.to_dict() for message in read_messages(entries)]
    except (TypeError, ValueError) as error:
        raise Unreadable(str(error)) from error


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    single: bool | None = None
    for row in rows:
        loss.at(row)
        messages = cast("list[Message]", row["messages"])
        single = _is_single(messages) if single is None else single
        if not single:
            yield {"user_input": list(_written_messages(messages, loss)), **_columns(row, loss)}
        elif (sample := _written_turn(messages, loss)) is not None:
            yield {**sample, **_columns(row, loss)}


def _is_single(messages: list[Message]) -> bool:
    return bool(messages) and _SINGLE in taken_back(messages[-1], NAME)


def _written_turn(messages: list[Message], loss: Loss) -> Row | None:
    if [message["role"] for message in messages] != ["user", "assistant"] or messages[1].get("tool_calls"):
        loss.add_dropped("a conversation in a file of single turns")
        return None
    for index, message in enumerate(messages):
        others = _without(message, "role", "content", "retrieval_context" if index else "")
        if others.get("metadata") == {NAME: {_SINGLE: True}}:
            del others["metadata"]
        loss.left_out(others, others, index)
    question, answer = messages
    contexts = answer.get("retrieval_context")
    sample: Row = {"user_input": _text(question, 0, loss), "response": _text(answer, 1, loss)}
    return sample if contexts is None else {**sample, "retrieved_contexts": contexts}


def _written_messages(messages: list[Message], loss: Loss) -> Iterator[Row]:
    for index, message in enumerate(messages):
        if message["role"] not in TYPES:
            loss.add_dropped("system message", index)
            continue
        loss.left_out(message, ("type",), index)
        calls: list[Row] = [_with_object(call, index, loss) for call in message.get("tool_calls") or ()]
        beside = {"tool_calls": calls} if calls else {}
        yield ragas_message({**_without(message, "type"), "content": _text(message, index, loss), **beside})


def _text(message: Message, index: int, loss: Loss) -> str:
    content: Any = message.get("content")
    for part in cast("list[Row]", content) if isinstance(content, list) else ():
        if part.get("type") != "text":
            loss.add_dropped(f"a part of the type {part.get('type')!r}", index)
    return text_of(content)


def _with_object(call: Row, index: int | None, loss: Loss) -> Row:
    """Return a call whose arguments are an object, empty where they are not."""
    if isinstance(arguments_of(call), dict):
        return call
    loss.add_dropped("arguments of a call that are not a JSON object", index)
    return {**call, "function": {**fields_in(call.get("function")), "arguments": "{}"}}


def _wanted_call(value: Any, loss: Loss) -> Any:
    """Return a call that is wanted, in the shape of OpenAI's wire or in Ragas' own already, as Ragas reads it."""
    call = fields_in(value)
    return ragas_call(_with_object(call, None, loss)) if fields_in(call.get("function")) else value


def _columns(row: Row, loss: Loss) -> Row:
    """Return what is known about a conversation, by the names of Ragas' columns and else by ours."""
    known: Row = _without(row, "messages", "user_input")
    if "user_input" in row:
        loss.add_dropped("'user_input' next to messages")
    if isinstance(known.get("ground_truth"), str):
        known["reference"] = known.pop("ground_truth")
    if isinstance(calls := known.get("reference_tool_calls"), list):
        known["reference_tool_calls"] = [_wanted_call(call, loss) for call in cast("list[Any]", calls)]
    metadata = fields_in(known.get("metadata"))
    if moved := {key: metadata[key] for key in _OURS if key in metadata and key not in known}:
        others = _without(metadata, *moved)
        known = {**_without(known, "metadata"), **moved, **({"metadata": others} if others else {})}
    return known


FORMAT = Format(NAME, "Ragas samples", _fits, _read, _write, keeps_keys=True, keeps_outcomes=True, is_row=True)
