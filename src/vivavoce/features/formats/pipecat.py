"""Pipecat: transcripts, one message for each turn of a user or a bot, and the messages that it sends to clients (RTVI).

The context of a model that Pipecat keeps has OpenAI's messages and is read as our own.
Source: the turn messages and the RTVI models of pipecat-ai 1.14, and its guide on saving transcripts.
"""

from __future__ import annotations

from typing import Any

from vivavoce.conversations.format import NO_MESSAGES, Loss, Row
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    drop_empty,
    fields_in,
    objects_in,
    set_aside,
    text_in,
    time_in,
    tool_call,
    without,
)

NAME = "pipecat"
_LABEL = "rtvi-ai"
_OF_TURN = frozenset(("role", "content", "timestamp", "user_id", "interrupted"))


def _is_turn(fields: Row) -> bool:
    return fields.get("role") in ("user", "assistant") and isinstance(fields.get("content"), str | None)


def _is_certain(item: Any) -> bool:
    fields = fields_in(item)
    if fields.get("label") == _LABEL:
        return True
    known = "timestamp" in fields and ("interrupted" in fields or "user_id" in fields)
    return known and _is_turn(fields) and "tool_calls" not in fields


def _is_message(item: Any) -> bool:
    fields = fields_in(item)
    return fields.get("label") == _LABEL or (_is_turn(fields) and "timestamp" in fields)


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    messages: list[Message] = []
    for item in objects_in(items):
        index = len(messages)
        if item.get("label") == _LABEL:
            messages += _of_client(item, index, loss)
        elif _is_turn(item):
            messages.append(_turn(item))
        else:
            loss.add_dropped("what is not a turn", index)
    if not messages:
        raise Unreadable(NO_MESSAGES)
    return messages


def _turn(item: Row) -> Message:
    message: Message = {"role": item["role"], "content": item.get("content")}
    if name := text_in(item.get("user_id")):
        message["name"] = name
    if (time := time_in(item.get("timestamp"))) is not None:
        message["timestamp"] = time
    if item.get("interrupted") is True:
        message["metadata"] = {"interrupted": True}
    set_aside(message, NAME, without(item, _OF_TURN))
    return message


def _of_client(item: Row, index: int, loss: Loss) -> list[Message]:
    """Return the message that an RTVI message is, if it is one."""
    data, kind = fields_in(item.get("data")), text_in(item.get("type")) or "without a type"
    text = text_in(data.get("text"))
    match kind:
        case "user-transcription" if text and data.get("final") is not False:
            return [_turn({"role": "user", "content": text, **drop_empty({key: data.get(key) for key in _OF_SPEAKER})})]
        case "bot-transcription" if text:
            return [{"role": "assistant", "content": text}]
        case "llm-function-call":
            name = text_in(data.get("function_name")) or ""
            call = tool_call(text_in(data.get("tool_call_id")), name, data.get("args"))
            return [{"role": "assistant", "content": None, "tool_calls": [call]}]
        case "user-transcription":
            loss.add_repeated("transcripts that were not final")
        case _:
            loss.add_repeated(f"messages to clients: {kind}")
    return []


_OF_SPEAKER = ("timestamp", "user_id")

FORMAT = Messages(NAME, "Pipecat transcripts", ("messages", "transcript"), _is_certain, _is_message, _read).format()
