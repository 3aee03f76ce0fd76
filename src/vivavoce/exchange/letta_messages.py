"""Messages in the form of a Letta server: one row for each thing said, thought, called or returned.

Source of the shapes: the types of `letta-client`, under `letta_client/types/agents`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from vivavoce.exchange.calls import tool_call
from vivavoce.exchange.conversations import Message, Unreadable, set_aside, text_of
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.shapes import time_in

NAME = "letta"
UNKNOWN = "1970-01-01T00:00:00Z"
"""The date of a message of which nobody noted the time; Letta's messages must have one."""
_OTHERS = ("hidden_reasoning_message", "event_message", "summary_message", "usage_statistics", "stop_reason", "ping")
"""Kinds of rows that are no part of a conversation."""
_READ = ("message_type", "date", "content", "reasoning", "tool_call", "tool_calls", "tool_return", "tool_returns")
_READ_OF_RESULTS = ("tool_call_id", "status")


def letta_turns(turns: Sequence[Sequence[Message]]) -> list[list[dict[str, Any]]]:
    """Return the messages of each turn as rows with `message_type`, `id`, `date` and what the type has."""
    return [
        [
            {"id": f"message-{turn}-{place}", **row}
            for place, row in enumerate(row for message in messages for row in _rows(message))
        ]
        for turn, messages in enumerate(turns)
    ]


def _rows(message: Message) -> Iterator[dict[str, Any]]:
    for kind, fields in _parts(message):
        yield {"date": message.get("timestamp") or UNKNOWN, "message_type": kind, **fields}


def _parts(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    role, text = message["role"], text_of(message.get("content"))
    if role == "assistant":
        calls = cast("list[dict[str, Any]]", message.get("tool_calls") or [])
        if reasoning := message.get("reasoning_content"):
            yield "reasoning_message", {"reasoning": str(reasoning)}
        if text or not calls:
            yield "assistant_message", {"content": text}
        for call in calls:
            one = {**call["function"], "tool_call_id": call.get("id") or ""}
            yield "tool_call_message", {"tool_call": one, "tool_calls": [one]}
    elif role == "tool":
        failed = cast("dict[str, Any]", message.get("metadata") or {}).get("status") == "error"
        answer = {"tool_call_id": message.get("tool_call_id") or "", "tool_return": text}
        yield "tool_return_message", {"status": "error" if failed else "success", **answer}
    else:
        yield ("user_message" if role == "user" else "system_message"), {"content": text}


def read_letta(rows: Sequence[Any], loss: Loss) -> list[Message]:
    """Return our messages of rows; what the assistant thought, said and called in one step is one message.

    Raises:
        Unreadable: a row is not a message.
    """
    messages: list[Message] = []
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping) or "message_type" not in row:
            raise Unreadable(f"message {index}: an object with message_type is needed")
        _take(cast("Mapping[str, Any]", row), index, messages, loss)
    return messages


def _take(row: Mapping[str, Any], index: int, messages: list[Message], loss: Loss) -> None:
    match row["message_type"]:
        case "system_message" | "user_message" as kind:
            messages.append({"role": kind.partition("_")[0], "content": text_of(row.get("content"))})
        case "reasoning_message":
            _step(messages, "content", "tool_calls", "reasoning_content")["reasoning_content"] = (
                row.get("reasoning") or ""
            )
        case "assistant_message":
            _step(messages, "content", "tool_calls")["content"] = text_of(row.get("content"))
        case "tool_call_message" | "approval_request_message":
            _step(messages).setdefault("tool_calls", []).extend(_calls(row))
        case "tool_return_message":
            messages += _results(row)
        case "approval_response_message":
            messages += _results({"tool_returns": [one for one in row.get("approvals") or () if "tool_return" in one]})
        case kind if kind in _OTHERS:
            loss.dropped(f"a {kind}", index)
            return
        case kind:
            raise Unreadable(f"message {index}: no message of Letta has the type '{kind}'")
    if not messages:
        return
    if row.get("date") != UNKNOWN and (time := time_in(row.get("date"))) is not None:
        messages[-1].setdefault("timestamp", time)
    known = (*_READ, *_READ_OF_RESULTS) if row["message_type"] == "tool_return_message" else _READ
    set_aside(messages[-1], NAME, {key: value for key, value in row.items() if key not in known and value is not None})


def _step(messages: list[Message], *ended_by: str) -> Message:
    """Return the assistant message that is being read, a new one where the last has one of these parts already."""
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant" or any(last.get(part) is not None for part in ended_by):
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def _calls(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    calls: Any = row.get("tool_calls") or row.get("tool_call") or []
    for call in cast("list[Mapping[str, Any]]", calls if isinstance(calls, list) else [calls]):
        yield tool_call(call.get("tool_call_id"), str(call.get("name")), call.get("arguments"))


def _results(row: Mapping[str, Any]) -> Iterator[Message]:
    for returned in cast("list[Mapping[str, Any]]", row.get("tool_returns") or [row]):
        value = returned.get("tool_return")
        message: Message = {"role": "tool", "content": value if isinstance(value, str) else text_of(value)}
        if returned.get("tool_call_id"):
            message["tool_call_id"] = returned["tool_call_id"]
        if returned.get("status") == "error":
            message["metadata"] = {"status": "error"}
        yield message
