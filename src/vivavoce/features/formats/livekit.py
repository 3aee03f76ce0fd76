"""LiveKit Agents: the history of a session (`ChatContext.to_dict`) and reports of sessions.

A message has the time at which the user stopped to speak, or the agent began, so that times between them are what the
user waited. Source: the models of livekit-agents 1.8.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if, is_true
from vivavoce.conversations.format import NO_MESSAGES, Loss, Place, Record, Row
from vivavoce.conversations.shapes import (
    Between,
    Items,
    Message,
    Messages,
    Unreadable,
    drop_empty,
    fields_in,
    hand_over,
    items_in,
    number_in,
    objects_in,
    set_aside,
    state_outcome,
    text_in,
    time_in,
    tool_call,
    without,
)
from vivavoce.features.formats.traced import Repeats

NAME = "livekit"
_ROLES = ("system", "developer", "user", "assistant")
_KINDS = ("message", "function_call", "function_call_output", "agent_handoff", "agent_config_update")
_SPEECH_TIMES = {"user": "stopped_speaking_at", "assistant": "started_speaking_at"}
_OF_ITEM = frozenset(
    ("type", "role", "content", "created_at", "call_id", "name", "arguments", "output", "metrics", "interrupted")
)


def _is_certain(item: Any) -> bool:
    fields = fields_in(item)
    match fields.get("type"):
        case "message":
            return "interrupted" in fields and isinstance(fields.get("content"), list)
        case "function_call_output":
            return "is_error" in fields
        case kind:
            return kind in ("agent_handoff", "agent_config_update")


def _is_message(item: Any) -> bool:
    return fields_in(item).get("type") in _KINDS


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    if events := objects_in(beside.pop("events", None)):
        beside |= _events(events, items, loss)
    messages: list[Message] = []
    between = Between(NAME)
    agent: str | None = None
    for item in objects_in(items):
        index = len(messages)
        match item.get("type"):
            case "message" if item.get("role") in _ROLES:
                messages.append(_message(item, agent, index, loss))
            case "function_call":
                _call(item, agent, messages)
            case "function_call_output":
                messages.append(_result(item))
            case kind:
                loss.aside(text_in(kind) or "what is not an item", index)
                between.add(item)
                if kind == "agent_handoff":
                    receiver = text_in(item.get("new_agent_id"))
                    if agent and receiver:
                        hand_over(messages, receiver, agent)
                    agent = receiver
        if len(messages) > index:
            between.give_to(messages[index])
    between.end(messages)
    if not messages:
        raise Unreadable(NO_MESSAGES)
    return messages


def _events(events: list[Row], items: Items, loss: Loss) -> Row:
    """Return the events of a session without the items that they hold again."""
    repeats = Repeats(_key_of, objects_in(items))
    rest = [repeats.rest_of(event) for event in events]
    repeats.tell(loss, len(rest))
    return {"events": rest}


def _key_of(item: Row) -> Hashable | None:
    """Return who says what, which call it is or which it answers."""
    match item.get("type"):
        case "message":
            return ("message", text_in(item.get("id")), text_in(item.get("role")), json.dumps(item.get("content")))
        case "function_call":
            return ("call", text_in(item.get("call_id")), text_in(item.get("name")), json.dumps(item.get("arguments")))
        case "function_call_output":
            return ("result", text_in(item.get("call_id")), json.dumps(item.get("output")))
        case _:
            return None


def _message(item: Row, agent: str | None, index: int, loss: Loss) -> Message:
    role = cast("str", item["role"])
    message: Message = {"role": role, "content": _text(item.get("content"), index, loss)}
    if agent and role == "assistant":
        message["name"] = agent
    metrics = fields_in(item.get("metrics"))
    time = time_in(metrics.get(_SPEECH_TIMES.get(role, ""))) or time_in(item.get("created_at"))
    if time is not None:
        message["timestamp"] = time
    known: Row = {"interrupted": True} if item.get("interrupted") is True else {}
    if (latency := number_in(metrics.get("e2e_latency"))) is not None:
        known["latency"] = latency
    if known:
        message["metadata"] = known
    set_aside(message, NAME, drop_empty({**without(item, _OF_ITEM), "metrics": metrics}))
    return message


def _text(content: Any, index: int, loss: Loss) -> str | None:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in items_in(content):
        if isinstance(part, str):
            texts.append(part)
        elif (transcript := text_in(fields_in(part).get("transcript"))) is not None:
            texts.append(transcript)
            loss.add_dropped("audio; the transcript is kept", index)
        elif fields_in(part).get("type") != "cache_breakpoint":
            loss.add_dropped(text_in(fields_in(part).get("type")) or "a part without a type", index)
    return "\n".join(texts) if texts else None


def _call(item: Row, agent: str | None, messages: list[Message]) -> None:
    """Add a call; those that stand together are of one message."""
    call = tool_call(text_in(item.get("call_id")), text_in(item.get("name")) or "", item.get("arguments"))
    last = messages[-1] if messages else {}
    if last.get("role") == "assistant" and last.get("tool_calls"):
        last["tool_calls"].append(call)
        return
    message: Message = {"role": "assistant", "content": None, "tool_calls": [call]}
    if agent:
        message["name"] = agent
    if (time := time_in(item.get("created_at"))) is not None:
        message["timestamp"] = time
    messages.append(message)


def _result(item: Row) -> Message:
    output = item.get("output")
    message: Message = {
        "role": "tool",
        "content": output if isinstance(output, str) else text_in(output),
        "tool_call_id": text_in(item.get("call_id")),
    }
    if name := text_in(item.get("name")):
        message["name"] = name
    if (time := time_in(item.get("created_at"))) is not None:
        message["timestamp"] = time
    state_outcome(message, failed_if(is_true(item.get("is_error"))))
    return message


def _history(record: Record) -> Record:
    """Return a report as what stands next to its history, with the session as the id."""
    report = record.fields or {}
    history = fields_in(report.get("chat_history")).get("items")
    if not isinstance(history, list):
        return record
    rest = {key: value for key, value in report.items() if key != "chat_history"}
    identity = text_in(report.get("room_id")) or text_in(report.get("job_id"))
    return record._replace(value={**drop_empty({"id": identity}), **rest, "items": history})


_MESSAGES = Messages(NAME, "LiveKit sessions", ("items",), _is_certain, _is_message, _read).format()


def _fits(record: Record) -> bool:
    return _MESSAGES.fits(_history(record))


def _histories(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    assert _MESSAGES.read is not None
    return _MESSAGES.read(map(_history, records), loss)


FORMAT = replace(_MESSAGES, fits=_fits, read=_histories)
