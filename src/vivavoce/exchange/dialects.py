"""Lists of messages within other records: which format they have, and what they say in ours.

Tools that record what went into a model and what came out keep it as the program had it, so it may have any format.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from vivavoce.exchange.calls import tool_call
from vivavoce.exchange.conversations import Message, set_aside, text_of
from vivavoce.exchange.format import Row
from vivavoce.exchange.formats import NATIVE, all_formats
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.native import is_native
from vivavoce.exchange.parts import as_text, is_message, read_message
from vivavoce.exchange.records import Place, Record
from vivavoce.exchange.shapes import fields_in

_NOWHERE = Place(Path(), 0)
_KEYS = frozenset(("role", "content", "name", "tool_calls", "tool_call_id", "timestamp", "metadata", "refusal"))
_TRACES = frozenset(("otel", "openinference", "langfuse", "langsmith"))
_SPEAKERS = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "bot": "assistant"}


def messages_in(value: Any, loss: Loss) -> list[Message] | None:
    """Return the messages that a list, or an object with one, holds in any of our formats; None if it holds none."""
    items = _items(value)
    if items and all(map(is_message, items)):
        return [one for index, item in enumerate(items) for one in read_message(item, index, loss)]
    if items and is_native({"messages": items}):
        return [_clean(item, index, loss) for index, item in enumerate(items)]
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
    for format_ in all_formats():
        if format_.name in _TRACES or format_.name == NATIVE or format_.read is None:
            continue
        if format_.fits(record):
            rows = [row for _, row in format_.read([record], loss)]
            return cast("list[Message]", rows[0]["messages"]) if rows else None
    return None


def _says_who(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(cast("Row", item).get("role"), str)


def _clean(item: Row, index: int, loss: Loss) -> Message:
    """Return a message in OpenAI's shape, or nearly, as one of ours that can be read."""
    role = _SPEAKERS.get(item["role"], item["role"])
    if role not in ("system", "developer", "user", "assistant", "tool"):
        loss.guessed(f"that '{role}' is the user", index)
        role = "user"
    content: object = item.get("content")
    if content is not None and not is_native({"messages": [{"role": role, "content": content}]}):
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
    others = {key: value for key, value in item.items() if key not in _KEYS and value is not None}
    for key in others:
        loss.unknown(key, index)
    set_aside(message, "logged", others)
    return message


def _call(value: Any, index: int, loss: Loss) -> Row | None:
    call = fields_in(value)
    inner = fields_in(call.get("function")) or call
    name = inner.get("name")
    if not isinstance(name, str):
        loss.dropped("a tool call without a name", index)
        return None
    arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
    identity = call.get("id") or call.get("tool_call_id")
    return tool_call(None if identity is None else str(identity), name, arguments)
