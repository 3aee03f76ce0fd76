"""What tools have recorded of the input and the output of a step: which format it has, and what it says in ours.

They keep it as the program had it: lists of messages in any format, what a provider answered, an object with a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from vivavoce.comparing.call_outcomes import stated_outcome
from vivavoce.conversations.format import NATIVE, Fits, Loss, Place, Reader, Record, Row, all_formats
from vivavoce.conversations.messages_of_formats import Message, set_aside, text_of
from vivavoce.conversations.own_rows import is_native
from vivavoce.conversations.shapes import fields_in, objects_in, state_outcome, tool_call
from vivavoce.features.formats.parts import as_text, is_message, parsed, read_message

_NOWHERE = Place(Path(), 0)
_KEYS = frozenset(
    ("role", "content", "name", "tool_calls", "tool_call_id", "timestamp", "metadata", "refusal", "outcome")
)
_TRACES = frozenset(("otel", "openinference", "langfuse", "langsmith", "openai-agents-traces"))
Side = Literal["input", "output"]

_TEXTS = {
    "input": ("input", "question", "query", "user_input", "prompt", "message", "text", "content"),
    "output": ("output", "answer", "response", "result", "message", "text", "content"),
}
"""Under which keys objects have what was said, the best ones first."""

_SPEAKERS = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "bot": "assistant"}


def said_in(value: Any, side: Side, loss: Loss) -> list[Message]:
    """Return what the input of a step asks, or its output answers; nothing if it is neither message nor text."""
    inner = parsed(value)
    while isinstance(inner, list) and len(cast("list[Any]", inner)) == 1 and isinstance(inner[0], list):
        inner = cast("list[Any]", inner)[0]
    if isinstance(inner, str):
        return [_text_message(inner, side)] if inner else []
    fields = fields_in(inner)
    for answers in (_first(fields.get("choices")), _first(fields.get("generations"))):
        if answers is not None:
            if more := objects_in(fields.get("choices"))[1:]:
                loss.dropped("answers that a model made beside the first", count=len(more))
            answer: Any = answers.get("message") or answers.get("text")
            return said_in(answer, side, loss) if isinstance(answer, dict | str) else []
    messages = messages_in(inner, loss)
    return _in_members(fields, side, loss) if messages is None else messages


def _in_members(fields: Row, side: Side, loss: Loss) -> list[Message]:
    for key in ("messages", *_TEXTS[side]):
        held: Any = fields.get(key)
        if isinstance(held, str) and held:
            return [_text_message(held, side)]
        if isinstance(held, list | dict) and held and (messages := said_in(cast("Any", held), side, loss)):
            return messages
    args: Any = fields.get("args")
    values = cast("list[Any]", args) if isinstance(args, list) else []
    texts = [text for text in (*values, *fields_in(fields.get("kwargs", fields)).values()) if isinstance(text, str)]
    return [_text_message(texts[0], side)] if len(texts) == 1 and texts[0] else []


def _first(value: Any) -> Row | None:
    """Return the first object of a list, which may be in another list."""
    while isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]
    return fields_in(value) or None


def _text_message(text: str, side: Side) -> Message:
    return {"role": "user" if side == "input" else "assistant", "content": text}


def messages_in(value: Any, loss: Loss) -> list[Message] | None:
    """Return the messages that a list, or an object with one, holds in any of our formats; None if it holds none."""
    items = _items(value)
    if items and all(map(is_message, items)):
        return [one for index, item in enumerate(items) for one in read_message(item, index, loss)]
    if items and is_native({"messages": items}):
        system: Any = fields_in(value).get("system")
        told: list[Message] = [{"role": "system", "content": system}] if isinstance(system, str) and system else []
        return told + [_clean(item, index, loss) for index, item in enumerate(items)]
    for holder in (value, {"messages": value}):
        if (messages := _in_a_format(Record(_NOWHERE, holder), loss)) is not None:
            return messages
    if items and all(_says_who(item) for item in items):
        return [_clean(item, index, loss) for index, item in enumerate(items)]
    return None


def _items(value: Any) -> list[Any]:
    """Return the messages of a list, an object with a list of them, or a single one."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    fields = fields_in(value)
    held: Any = fields.get("messages")
    if isinstance(held, list):
        return cast("list[Any]", held)
    return [fields] if _says_who(fields) else []


def _in_a_format(record: Record, loss: Loss) -> list[Message] | None:
    for fits, read in _dialects():
        if fits(record):
            line, conversation = loss.line, loss.conversation
            rows = [row for _, row in read([record], loss)]
            loss.line, loss.conversation = line, conversation  # which the reader took for its own
            return cast("list[Message]", rows[0]["messages"]) if rows else None
    return None


@cache
def _dialects() -> list[tuple[Fits, Reader]]:
    """Return how the formats of messages are known and read."""
    others = (one for one in all_formats() if one.name not in _TRACES and one.name != NATIVE)
    return [(one.fits, one.read) for one in others if one.read is not None]


def _says_who(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(cast("Row", item).get("role"), str)


def _clean(item: Row, index: int, loss: Loss) -> Message:
    """Return a message in OpenAI's shape, or nearly, as one of ours that can be read."""
    role = _SPEAKERS.get(item["role"], item["role"])
    if role not in ("system", "developer", "user", "assistant", "tool"):
        loss.guessed(f"that '{role}' is the user", index)
        role = "user"
    content: object = item.get("content")
    if not isinstance(content, str | None) and not is_native({"messages": [{"role": role, "content": content}]}):
        loss.guessed("the words of a message, from content of an unknown shape", index)
        content = text_of(content) or as_text(content)
    message: Message = {"role": role, "content": content}
    if isinstance(item.get("name"), str):
        message["name"] = item["name"]
    calls: object = item.get("tool_calls")
    if isinstance(calls, list) and calls and role == "assistant":
        message["tool_calls"] = [call for one in cast("list[Any]", calls) if (call := _call(one, index, loss))]
    if role == "tool" and (called := item.get("tool_call_id") or item.get("id")) is not None:
        message["tool_call_id"] = str(called)
    if role == "tool":
        state_outcome(message, stated_outcome(item))
    others = {key: value for key, value in item.items() if key not in _KEYS and value is not None}
    for key in others:
        loss.unknown(key, index)
    set_aside(message, "logged", others)
    return message


def _call(value: Any, index: int, loss: Loss) -> Row | None:
    call = fields_in(value)
    if call.get("type") == "custom" and (custom := fields_in(call.get("custom"))):
        call = {"id": call.get("id"), "name": custom.get("name"), "arguments": {"input": custom.get("input")}}
    inner = fields_in(call.get("function")) or call
    name = inner.get("name")
    if not isinstance(name, str):
        loss.dropped("a tool call without a name", index)
        return None
    arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
    identity = call.get("id") or call.get("tool_call_id")
    return tool_call(None if identity is None else str(identity), name, arguments)
