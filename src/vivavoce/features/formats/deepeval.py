"""DeepEval's test cases and goldens, as it saves them in JSON, JSONL and CSV, and as its classes dump them.

Turns with a role and words become messages, the tools of a turn calls with their results; `scenario` and
`expected_outcome` are what a tester plays. Names come in snake_case and, by its aliases, in camelCase.
Source: the classes `ConversationalTestCase`, `ConversationalGolden`, `LLMTestCase` and `Golden` of the package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Format, Loss, Place, Record, Row
from vivavoce.conversations.messages_of_formats import Message, text_of
from vivavoce.conversations.shapes import arguments_of, name_of, tool_call

NAME = "deepeval"
_FIELDS = {
    "scenario": "scenario",
    "expected_outcome": "goal",
    "user_description": "persona",
    "input": "input",
    "expected_output": "ground_truth",
    "name": "id",
}
_OF_CONTEXT = {"role": "chatbot_role", "reference_contexts": "context"}
_TURN = frozenset(("role", "content", "retrieval_context", "tools_called"))
_OWN = frozenset(("turns", "scenario", "expected_outcome", "actual_output", "user_description", "chatbot_role"))


def _snake(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with its keys in snake_case, without those that hold nothing, or no."""
    named = {re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", str(key)).lower(): one for key, one in value.items()}
    return {key: one for key, one in named.items() if one not in (None, "", [], {}, False)}


def _fits(record: Record) -> bool:
    if record.fields is None:
        return False
    case = _snake(record.fields)
    turns = case.get("turns")
    if isinstance(turns, str):
        return "scenario" in case or "expected_outcome" in case
    if isinstance(turns, list):
        return all(isinstance(one, Mapping) and "content" in one for one in cast("list[Any]", turns))
    return ("scenario" in case and "expected_outcome" in case) or {"input", "actual_output"} <= case.keys()


def _read(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    for record in records:
        loss.line, loss.conversation = record.place.line, None
        if record.fields is None:
            loss.broken("a test case must be an object {…}")
            continue
        row = row_of_case(record.fields, loss)
        if row is not None:
            yield record.place, row


def row_of_case(given: Mapping[str, Any], loss: Loss) -> Row | None:
    """Return the row of a test case, or of a golden; None, and a line in the report, where it holds nothing to ask."""
    case = _snake(given)
    case |= {key: _contexts(case[key], loss) for key in ("context", "retrieval_context") if key in case}
    row: Row = {ours: case.pop(theirs) for theirs, ours in _FIELDS.items() if theirs in case}
    loss.at(row)
    if shown := {ours: case.pop(theirs) for ours, theirs in _OF_CONTEXT.items() if theirs in case}:
        row["context"] = shown
    if tags := case.pop("tags", None):
        row["tags"] = tags if isinstance(tags, list) else [str(tags)]
    turns = _listed(case.pop("turns", None))
    answer = case.pop("actual_output", None)
    if turns is not None:
        messages = _messages(turns, loss)
        if messages is None:
            return None
        row["messages"] = messages
    elif isinstance(answer, str):
        row["messages"] = _exchange(row.pop("input", ""), answer, case, loss)
    if expected := _listed(case.pop("expected_tools", None)):
        row["reference_tool_calls"] = [_call(one, None) for one in map(_tool, expected) if one]
    if rest := _rest(case, row, loss):
        row["metadata"] = rest
    if not row.keys() & {"messages", "input", "goal", "scenario"}:
        loss.broken("a test case without turns, input or scenario")
        return None
    if "scenario" in row and "goal" not in row and "messages" not in row:
        row["goal"] = row["scenario"]
        loss.guessed("the goal of a scenario without an expected outcome: the scenario")
    return row


def _rest(case: Row, row: Row, loss: Loss) -> Row:
    """Return what a row of ours has in its metadata: theirs, and what is left of the case."""
    metadata = _object(case.pop("additional_metadata", None) or case.pop("metadata", None))
    if persona := _persona(case.pop("persona", None), row):
        metadata["persona"] = persona
        loss.aside("what a persona has but a description")
    for key in case:
        loss.unknown(key)
    return {**metadata, **case}


def _contexts(joined: Any, loss: Loss) -> Any:
    """Return the contexts of a cell of CSV, or of a line of JSONL, where DeepEval joins them."""
    if not isinstance(joined, str):
        return joined
    if "|" in joined:
        loss.guessed("where a context ends: at each |, with which DeepEval joins them")
    return joined.split("|")


def _object(value: Any) -> Row:
    """Return an object, be it the JSON of a cell; anything else stays under the name of the column."""
    if isinstance(value, str):
        with suppress(BrokenJson):
            value = parse(value)
    if isinstance(value, dict):
        return dict(cast("Row", value))
    return {} if value is None else {"additional_metadata": value}


def _persona(value: Any, row: Row) -> Any:
    """Put the description of a persona into the row, unless it is there; return what else there is."""
    if not isinstance(value, Mapping):
        return value
    persona = dict(cast("Mapping[str, Any]", value))
    described = persona.pop("characteristics", None)
    if row.setdefault("persona", described) != described:
        persona["characteristics"] = described
    if row["persona"] is None:
        del row["persona"]
    return persona


def _exchange(question: Any, answer: str, case: dict[str, Any], loss: Loss) -> list[Message]:
    asked: Message = {"role": "user", "content": str(question)}
    said = {key: case.pop(key) for key in ("retrieval_context", "tools_called") if key in case}
    return [asked, *_turn({"role": "assistant", "content": answer, **said}, 1, loss)]


def _listed(value: Any) -> list[Any] | None:
    """Return a list, or that of a cell of a table, which is written as JSON."""
    if isinstance(value, str):
        try:
            value = parse(value)
        except BrokenJson:
            return None
    return cast("list[Any]", value) if isinstance(value, list) else None


def _messages(turns: list[Any], loss: Loss) -> list[Message] | None:
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        given = _snake(cast("Mapping[str, Any]", turn)) if isinstance(turn, Mapping) else {}
        if given.get("role") not in ("user", "assistant") or not isinstance(given.get("content", ""), str):
            loss.broken(f"turn {index}: needs a role, user or assistant, and content")
            return None
        messages += _turn(given, index, loss)
    return messages


def _turn(turn: Mapping[str, Any], index: int, loss: Loss) -> Iterator[Message]:
    """Yield the calls that were made in a turn with their results, and what was said."""
    called = [one for one in map(_tool, _listed(turn.get("tools_called")) or []) if one]
    if called:
        calls = [_call(tool, f"call_{index}_{number}") for number, tool in enumerate(called)]
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        for tool, call in zip(called, calls, strict=True):
            if "output" in tool:
                output = tool["output"]
                text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
                yield {"role": "tool", "content": text, "tool_call_id": call["id"]}
    said: Message = {"role": turn["role"], "content": turn.get("content", "")}
    if isinstance(turn.get("retrieval_context"), list):
        said["retrieval_context"] = turn["retrieval_context"]
    if rest := {key: value for key, value in turn.items() if key not in _TURN}:
        said["metadata"] = {NAME: rest}
        loss.aside("other keys of a turn", index)
    yield said


def _tool(value: Any) -> dict[str, Any]:
    tool = _snake(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    return tool if "name" in tool else {}


def _call(tool: Mapping[str, Any], identity: str | None) -> dict[str, Any]:
    return tool_call(identity, str(tool["name"]), tool.get("input_parameters"))


def _write(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row in rows:
        loss.at(row)
        context = cast("Row", row.get("context") or {})
        case: Row = {"name": row.get("id"), "turns": list(_turns(cast("list[Message]", row["messages"]), loss))}
        case |= {theirs: row[ours] for theirs, ours in _FIELDS.items() if theirs in _OWN and ours in row}
        case |= {theirs: context[ours] for ours, theirs in _OF_CONTEXT.items() if ours in context}
        case |= {"tags": row["tags"]} if row.get("tags") else {}
        case |= {"additional_metadata": row["metadata"]} if row.get("metadata") else {}
        for key in context.keys() - _OF_CONTEXT.keys():
            loss.dropped(f"'context.{key}' of a row")
        for key in row.keys() - {"id", "messages", "scenario", "goal", "persona", "context", "tags", "metadata"}:
            loss.dropped(f"'{key}' of a row")
        yield {key: value for key, value in case.items() if value is not None}


def _turns(messages: list[Message], loss: Loss) -> Iterator[Row]:
    """Yield turns of user and assistant; calls stand with the next words of the assistant."""
    called: list[Row] = []
    results: dict[str, str] = {}
    for index, message in enumerate(messages):
        match message["role"]:
            case "tool":
                results[str(message.get("tool_call_id"))] = text_of(message.get("content"))
                continue
            case "system" | "developer":
                loss.dropped("system message", index)
                continue
            case role:
                called += cast("list[Row]", message.get("tool_calls") or [])
        text = text_of(message.get("content"))
        if message.get("tool_calls") and not text:
            continue
        turn: Row = {"role": role, "content": text}
        if message.get("retrieval_context"):
            turn["retrieval_context"] = message["retrieval_context"]
        if role == "assistant" and called:
            turn["tools_called"] = [_written(call, results) for call in called]
            called = []
        yield turn
    if called:
        loss.dropped("tool calls after the last words", count=len(called))


def _written(call: Row, results: Mapping[str, str]) -> Row:
    output = results.get(str(call.get("id")))
    written = {"name": name_of(call), "input_parameters": arguments_of(call)}
    return written if output is None else {**written, "output": output}


FORMAT = Format(NAME, "DeepEval test cases", _fits, _read, _write, document=list)
