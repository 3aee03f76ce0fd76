"""Letta: messages as its API lists them, exported agents (`.af`), and the results of letta-evals.

Messages are distinguished by `message_type`. A list that begins with the latest is turned around; a message of an
exported agent is read as the rows that the API lists of it.
Results are a conversation for each row of `<model>.jsonl`, with the sample from the `suite.json` next to it. Up to
0.16 they are `{"type": "result", "result": {…}}` in one file, with the sample in them.
Source: the types of the package letta-client 1.12, and the schema of agent files; letta_evals/models/results.py and
letta_evals/streaming.py of 0.26, and the same of 0.9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import NO_MESSAGES, Format, Loss, Place, Record, Row
from vivavoce.conversations.shapes import Items, Message, Messages, Unreadable, fields_in, objects_in, without
from vivavoce.targets.letta_rows import NAME, OTHERS, read_letta

_KINDS = (
    *("user_message", "system_message", "assistant_message", "reasoning_message"),
    *("tool_call_message", "tool_return_message", "approval_request_message", "approval_response_message"),
    *OTHERS,
)
_MESSAGE_TYPES = {"user": "user_message", "system": "system_message", "assistant": "assistant_message"}
_STORED = ("role", "type", "content", "tool_calls", "tool_returns", "tool_call_id", "created_at")
_HIDDEN = ("redacted_reasoning", "omitted_reasoning", "summarized_reasoning")
_OF_AGENT = ("id", "name", "description", "agent_type")
_ROLES = (*_MESSAGE_TYPES, "tool", "approval")


def _is_certain(item: Any) -> bool:
    fields = fields_in(item)
    return fields.get("message_type") in _KINDS or (_is_stored(fields) and "agent_id" in fields)


def _is_message(item: Any) -> bool:
    fields = fields_in(item)
    return isinstance(fields.get("message_type"), str) or _is_stored(fields)


def _is_stored(fields: Mapping[str, Any]) -> bool:
    """Whether it is a message of an exported agent."""
    return (
        fields.get("role") in _ROLES and isinstance(fields.get("content"), list | None) and "message_type" not in fields
    )


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    if "agent_type" in beside:
        agent = {key: value for key, value in beside.items() if key in _OF_AGENT}
        if len(agent) < len(beside):
            loss.add_dropped("settings and memory of an agent")
        beside.clear()
        beside |= agent
    times = [time for item in items if isinstance(time := fields_in(item).get("date"), str)]
    in_order = items[::-1] if times and times[0] > times[-1] else items
    messages = read_letta([row for item in in_order for row in _rows(item)], loss)
    if not messages:
        raise Unreadable(NO_MESSAGES)
    return messages


def _rows(item: Any) -> Iterator[Any]:
    """Yield what the API lists of a message: itself, or the parts of one of an exported agent."""
    stored = fields_in(item)
    if not _is_stored(stored):
        yield item
        return
    beside = {**without(stored, _STORED), "date": stored.get("created_at")}
    if stored["role"] == "tool":
        yield {**beside, "message_type": "tool_return_message", **_results_in(stored)}
        return
    if stored["role"] == "approval" and not stored.get("tool_calls"):
        yield {**beside, "message_type": "approval_response_message"}
        return
    words: list[Row] = []
    calls = objects_in(stored.get("tool_calls"))
    for part in objects_in(stored.get("content")):
        match part.get("type"):
            case "reasoning":
                yield {**beside, **without(part, ("type",)), "message_type": "reasoning_message"}
            case kind if kind in _HIDDEN:
                yield {**part, "message_type": "hidden_reasoning_message"}
            case "tool_call":
                calls.append(part)
            case _:
                words.append(part)
    if words or not calls:
        yield {**beside, "message_type": _MESSAGE_TYPES.get(stored["role"], "assistant_message"), "content": words}
    if calls:
        yield {**beside, "message_type": "tool_call_message", "tool_calls": calls}


def _results_in(stored: Row) -> Row:
    """Return the results in a stored message: those of its content, of its list if there are several, or the whole."""
    parts = [part for part in objects_in(stored.get("content")) if part.get("type") == "tool_return"]
    if parts:
        return {"tool_returns": [{**part, "tool_return": part.get("content")} for part in parts]}
    results = objects_in(stored.get("tool_returns"))
    if len(results) > 1:
        returned = [
            {**result, "tool_return": result.get("tool_return", result.get("func_response"))} for result in results
        ]
        return {"tool_returns": returned}
    return {"tool_return": stored.get("content"), "tool_call_id": stored.get("tool_call_id")}


FORMAT = replace(
    Messages(NAME, "Letta messages", ("messages",), _is_certain, _is_message, _read).format(), lists=(("agents",),)
)


_EVALS = "letta-evals"
_RUN = re.compile(r"run_(\d+)\.jsonl")
_OF_SAMPLE = ("agent_args", "rubric_vars", "extra_vars", "rubric")
_NO_RESULTS = ("header", "summary")
_RESULT_KEYS = ("agent_id", "model_handle", "model_name", "reward", "usage", "timing", "cost")


def _fits(record: Record) -> bool:
    result = _result(record.value)
    return result is not None and isinstance(result.get("trajectory"), list)


def _result(value: object) -> Row | None:
    """Return the result in a record, None if there is none."""
    row: Row = cast("Row", value) if isinstance(value, dict) else {}
    if row.get("type") == "result" and isinstance(row.get("result"), dict):
        return row["result"]
    return row if "sample_id" in row and "trajectory" in row else None


def _read_results(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    folders: dict[Path, dict[str, Row]] = {}
    first_model: dict[str, str] = {}
    for record in records:
        result = _result(record.value)
        if result is None:
            if (record.fields or {}).get("type") not in _NO_RESULTS:
                loss.add_broken("not a result of letta-evals: sample_id and trajectory are needed")
            continue
        folder = record.place.file.parent
        if folder not in folders:
            folders[folder] = _samples(folder)
        sample = _sample(result, folders[folder])
        name, model = str(sample.get("id", result.get("sample_id"))), str(_model(result))
        loss.line, loss.conversation = record.place.line, name
        try:
            row = _row(result, sample, loss)
        except Unreadable as error:
            loss.add_broken(str(error))
            continue
        again = first_model.setdefault(name, model) != model
        run = _RUN.fullmatch(record.place.file.name)
        trial = {"trial": int(run[1]) - 1} if run and int(run[1]) > 1 else {}
        yield record.place, {"id": f"{name}/{model}" if again else name, **trial, **row}


def _model(result: Row) -> object:
    return result.get("model_handle") or result.get("model_name") or ""


def _samples(folder: Path) -> dict[str, Row]:
    """Return the samples in the `suite.json` of a folder of results by their ids; none if it is missing or broken."""
    for place in (folder, folder.parent):
        try:
            data: Any = json.loads((place / "suite.json").read_text(encoding="utf-8"))
            samples = cast("list[Row]", data["samples"])
            return {str(sample["id"]): sample for sample in samples}
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return {}


def _sample(result: Row, samples: Mapping[str, Row]) -> Row:
    known: object = result.get("sample")
    return cast("Row", known) if isinstance(known, dict) else samples.get(str(result.get("sample_id")), {})


def _row(result: Row, sample: Row, loss: Loss) -> Row:
    turns = result.get("trajectory")
    if not isinstance(turns, list) or not any(cast("list[Any]", turns)):
        error: Any = result.get("error")
        reason = cast("Row", error).get("message") if isinstance(error, dict) else error
        raise Unreadable(f"has no conversation{f': {reason}' if reason else ''}; viva convert skips such results")
    messages: list[Message] = []
    question: Any = sample.get("input")
    inputs = cast("list[Any]", question) if isinstance(question, list) else [question]
    for place, turn in enumerate(cast("list[Any]", turns)):
        messages_of_turn = read_letta(cast("list[Any]", turn) if isinstance(turn, list) else [turn], loss)
        if not any(message["role"] == "user" for message in messages_of_turn):
            messages.append(_input_message(inputs[place] if place < len(inputs) else None, loss))
        messages += messages_of_turn
    row: Row = {"messages": messages}
    truth = sample.get("ground_truth")
    if truth is not None and (not isinstance(truth, list) or len(cast("list[Any]", truth)) == _user_turns(messages)):
        row["ground_truth"] = truth
    elif truth is not None:
        loss.add_dropped("a list of truths without one per turn")
    row |= {key: sample[key] for key in _OF_SAMPLE if sample.get(key)}
    grades = fields_in(result.get("grades"))
    extra: Row = {key: result[key] for key in _RESULT_KEYS if result.get(key) is not None}
    extra["grades"] = {name: fields_in(grade).get("score") for name, grade in grades.items()}
    return {**row, "metadata": {_EVALS: extra}}


def _input_message(text: object, loss: Loss) -> Message:
    """Return what the user said in a turn that does not have it."""
    if text is None:
        loss.add_guess("what the user said: neither the turn nor a suite.json next to the file has it")
    return {"role": "user", "content": "(not recorded)" if text is None else str(text)}


def _user_turns(messages: Iterable[Message]) -> int:
    return sum(message["role"] == "user" for message in messages)


EVALS = Format(_EVALS, "results of letta-evals", _fits, _read_results)
