"""Letta: messages as its API lists them, distinguished by `message_type`, and the messages of exported agents (`.af`).

A list that begins with the latest is turned around; a message of an exported agent is read as the rows that the API
lists of it. Source: the types of the package letta-client 1.12, and the schema of agent files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vivavoce.conversations.format import NO_MESSAGES, Loss, Row
from vivavoce.conversations.messages_of_formats import Items, Message, Messages, Unreadable
from vivavoce.conversations.shapes import fields_in, objects_in, without
from vivavoce.targets.letta_rows import NAME, OTHERS, read_letta

_KINDS = (
    *("user_message", "system_message", "assistant_message", "reasoning_message"),
    *("tool_call_message", "tool_return_message", "approval_request_message", "approval_response_message"),
    *OTHERS,
)
_SPOKEN = {"user": "user_message", "system": "system_message", "assistant": "assistant_message"}
_STORED = ("role", "type", "content", "tool_calls", "tool_returns", "tool_call_id", "created_at")
_HIDDEN = ("redacted_reasoning", "omitted_reasoning", "summarized_reasoning")
_OF_AGENT = ("id", "name", "description", "agent_type")
_ROLES = (*_SPOKEN, "tool", "approval")


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
            loss.dropped("settings and memory of an agent")
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
        yield {**beside, "message_type": "tool_return_message", **_returned(stored)}
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
        yield {**beside, "message_type": _SPOKEN.get(stored["role"], "assistant_message"), "content": words}
    if calls:
        yield {**beside, "message_type": "tool_call_message", "tool_calls": calls}


def _returned(stored: Row) -> Row:
    """Return the results in a stored message: those of its content, of its list if there are several, or the whole."""
    parts = [part for part in objects_in(stored.get("content")) if part.get("type") == "tool_return"]
    if parts:
        return {"tool_returns": [{**part, "tool_return": part.get("content")} for part in parts]}
    listed = objects_in(stored.get("tool_returns"))
    if len(listed) > 1:
        returned = [{**one, "tool_return": one.get("tool_return", one.get("func_response"))} for one in listed]
        return {"tool_returns": returned}
    return {"tool_return": stored.get("content"), "tool_call_id": stored.get("tool_call_id")}


FORMAT = replace(
    Messages(NAME, "Letta messages", ("messages",), _is_certain, _is_message, _read).format(), lists=(("agents",),)
)
