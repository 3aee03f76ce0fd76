"""What tools have recorded of the input and the output of a step: which format it has, and what it says in ours.

They keep it as the program had it: lists of messages in any format, what a provider answered, an object with a text; or
messages in parts, as OpenTelemetry's conventions for generative AI have them. A message in parts that holds what tools
returned becomes a message for each result. Thoughts, and parts of models' own tools, are kept in the metadata.
Source: the JSON schemas and models of `gen_ai.input.messages` in open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from vivavoce.comparing.call_outcomes import stated_outcome
from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import NATIVE, Fits, Loss, Place, Reader, Record, Row, all_formats
from vivavoce.conversations.own_rows import is_native
from vivavoce.conversations.shapes import (
    Message,
    arguments_of,
    fields_in,
    name_of,
    objects_in,
    set_aside,
    split_data_url,
    state_outcome,
    taken_back,
    text_of,
    tool_call,
)

NAME = "otel"
_ROLES = {
    **{role: role for role in ("system", "developer", "user", "assistant", "tool")},
    **dict.fromkeys(("model", "ai"), "assistant"),
    **dict.fromkeys(("human",), "user"),
    **dict.fromkeys(("function",), "tool"),
}
_OWN = ("tool_call", "tool_call_response", "reasoning", "blob", "uri", "compaction", "server_tool_call")


def is_message(item: Any) -> bool:
    """Return whether an item is a message in parts that say their types."""
    if not isinstance(item, dict):
        return False
    parts = cast("Row", item).get("parts")
    return (
        "role" in item
        and isinstance(parts, list)
        and all(isinstance(part, dict) and "type" in part for part in cast("list[Any]", parts))
    )


def is_certain(item: Any) -> bool:
    """Return whether an item is a message with a part that only these conventions have."""
    return is_message(item) and any(
        part.get("type") in _OWN or (part.get("type") == "text" and "content" in part)
        for part in cast("list[Row]", item["parts"])
    )


def read_message(item: Row, index: int, loss: Loss) -> list[Message]:
    """Return a message in parts as ours, with one for each result of a tool."""
    parts = [cast("Row", part) for part in cast("list[Any]", item.get("parts") or []) if isinstance(part, dict)]
    role = _role(item.get("role"), index, loss)
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    others = [part for part in parts if part.get("type") != "tool_call_response"] if results else parts
    messages = [_result(part, role) for part in results]
    if others or not results:
        message = _assistant(others, index, loss) if role == "assistant" else _text_or_parts(role, others, index, loss)
        messages.append(message)
    extra = {key: value for key, value in item.items() if key not in ("role", "parts", "name") and value is not None}
    for key in extra:
        if key != "finish_reason":
            loss.unknown(key, index)
    if isinstance(item.get("name"), str):
        messages[-1]["name"] = item["name"]
    set_aside(messages[-1], NAME, extra)
    return messages


def write_message(message: Message, index: int, loss: Loss) -> Row:
    """Return a message of ours in parts."""
    extra = taken_back(message, NAME)
    role = extra.pop("role", message["role"])
    parts: list[Row] | None = extra.pop("parts", None)
    in_json = extra.pop("json", False)
    key = extra.pop("key", "response")
    extra.pop("with_next", None)
    if message["role"] == "tool":
        content: Any = text_of(message.get("content"))
        value = parse(content) if in_json else content
        parts = [{"type": "tool_call_response", "id": message.get("tool_call_id"), key: value}]
    elif parts is None:
        parts = [*_parts(message.get("content"), index, loss), *map(_call, message.get("tool_calls") or ())]
    name = {"name": message["name"]} if message.get("name") else {}
    return {"role": role, "parts": parts, **name, **extra}


def _role(role: Any, index: int, loss: Loss) -> str:
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        loss.add_guess(f"that '{role}' is the user", index)
    return known or "user"


def _assistant(parts: list[Row], index: int, loss: Loss) -> Message:
    calls: list[Row] = []
    words: list[str] = []
    plain = True
    for part in parts:
        match part.get("type"):
            case "text" if isinstance(part.get("content"), str):
                plain = plain and not calls and not words and len(part) == 2
                words.append(part["content"])
            case "tool_call":
                identity = part.get("id")
                plain = plain and part.keys() <= {"type", "id", "name", "arguments"} and "id" in part
                called = None if identity is None else str(identity)
                calls.append(tool_call(called, str(part.get("name")), part.get("arguments")))
                plain = plain and arguments_of(calls[-1]) == part.get("arguments")
            case kind:
                plain = False
                loss.aside(str(kind), index)
    message: Message = {"role": "assistant", "content": join_text_parts(words) if words else None}
    if calls:
        message["tool_calls"] = calls
    if not plain:
        set_aside(message, NAME, {"parts": parts})
    return message


def _text_or_parts(role: str, parts: list[Row], index: int, loss: Loss) -> Message:
    contents: list[Row] = []
    plain = True
    for part in parts:
        content = _content(part)
        if content is None:
            loss.aside(str(part.get("type")), index)
            plain = False
        else:
            contents.append(content)
            plain = plain and _part(content) == part
    single = len(contents) == 1 and contents[0]["type"] == "text"
    message: Message = {"role": role, "content": contents[0]["text"] if single else contents or ""}
    if not plain or not contents:
        set_aside(message, NAME, {"parts": parts})
    return message


def _result(part: Row, role: str) -> Message:
    key = next((key for key in ("response", "result", "content") if key in part), "response")
    value = part.get(key)
    identity = part.get("id")
    called = None if identity is None else str(identity)
    message: Message = {"role": "tool", "content": as_text(value), "tool_call_id": called}
    state_outcome(message, stated_outcome(part))
    extra: Row = {} if isinstance(value, str) else {"json": True}
    extra |= {} if key == "response" else {"key": key}
    extra |= {} if role == "tool" else {"role": role}
    set_aside(message, NAME, extra)
    return message


def as_text(value: Any) -> str:
    """Return what a tool returned as text, or as JSON if it is not text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _content(part: Row) -> Row | None:
    """Return a part as one of our content, None if we have none such."""
    content, kind = part.get("content"), str(part.get("mime_type") or "")
    match part.get("type"), part.get("modality"):
        case "text", _ if isinstance(content, str):
            return {"type": "text", "text": content}
        case "uri", "image" if isinstance(part.get("uri"), str):
            return {"type": "image_url", "image_url": {"url": part["uri"]}}
        case "blob", "image" if isinstance(content, str):
            return {"type": "image_url", "image_url": {"url": f"data:{kind or 'image/png'};base64,{content}"}}
        case "blob", "audio" if isinstance(content, str):
            return {"type": "input_audio", "input_audio": {"data": content, "format": kind.partition("/")[2] or "wav"}}
        case "file", _ if isinstance(part.get("file_id"), str):
            return {"type": "file", "file": {"file_id": part["file_id"]}}
        case _:
            return None


def _parts(content: Any, index: int, loss: Loss) -> list[Row]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    parts: list[Row] = []
    for item in cast("list[Row]", content):
        if (part := _part(item)) is not None:
            parts.append(part)
        else:
            loss.add_dropped(str(item.get("type")), index)
    return parts


def _part(content: Row) -> Row | None:
    """Return a part of our content as one of theirs, None if they have none such."""
    match content.get("type"):
        case "text" | "refusal" as kind:
            return {"type": "text", "content": content.get(kind)}
        case "image_url":
            return _image(content["image_url"]["url"])
        case "input_audio":
            audio = content["input_audio"]
            kind = f"audio/{audio['format']}"
            return {"type": "blob", "modality": "audio", "mime_type": kind, "content": audio["data"]}
        case "file" if content["file"].get("file_id"):
            return {"type": "file", "modality": "document", "file_id": content["file"]["file_id"]}
        case _:
            return None


def _image(url: str) -> Row:
    if (media := split_data_url(url)) is None:
        return {"type": "uri", "modality": "image", "uri": url}
    kind, data = media
    return {"type": "blob", "modality": "image", "mime_type": kind, "content": data}


def _call(call: Row) -> Row:
    return {"type": "tool_call", "id": call.get("id"), "name": name_of(call), "arguments": arguments_of(call)}


def parse_json(value: Any) -> Any:
    """Return what a text of JSON holds; a text that is not one, and any other value, as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse(value)
        except BrokenJson:
            return value
    return value


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
    inner = parse_json(value)
    while isinstance(inner, list) and len(cast("list[Any]", inner)) == 1 and isinstance(inner[0], list):
        inner = cast("list[Any]", inner)[0]
    if isinstance(inner, str):
        return [_text_message(inner, side)] if inner else []
    fields = fields_in(inner)
    for answers in (_first(fields.get("choices")), _first(fields.get("generations"))):
        if answers is not None:
            if more := objects_in(fields.get("choices"))[1:]:
                loss.add_dropped("answers that a model made in addition to the first", count=len(more))
            answer: Any = answers.get("message") or answers.get("text")
            return said_in(answer, side, loss) if isinstance(answer, dict | str) else []
    messages = messages_in(inner, loss)
    return _in_members(fields, side, loss) if messages is None else messages


def _in_members(fields: Row, side: Side, loss: Loss) -> list[Message]:
    for key in ("messages", *_TEXTS[side]):
        member: Any = fields.get(key)
        if isinstance(member, str) and member:
            return [_text_message(member, side)]
        if isinstance(member, list | dict) and member and (messages := said_in(cast("Any", member), side, loss)):
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
        return [message for index, item in enumerate(items) for message in read_message(item, index, loss)]
    if items and is_native({"messages": items}):
        system: Any = fields_in(value).get("system")
        instructions: list[Message] = (
            [{"role": "system", "content": system}] if isinstance(system, str) and system else []
        )
        return instructions + [_clean(item, index, loss) for index, item in enumerate(items)]
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
    messages: Any = fields.get("messages")
    if isinstance(messages, list):
        return cast("list[Any]", messages)
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
    others = (format_ for format_ in all_formats() if format_.name not in _TRACES and format_.name != NATIVE)
    return [(format_.fits, format_.read) for format_ in others if format_.read is not None]


def _says_who(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(cast("Row", item).get("role"), str)


def _clean(item: Row, index: int, loss: Loss) -> Message:
    """Return a message in OpenAI's shape, or nearly, as one of ours that can be read."""
    role = _SPEAKERS.get(item["role"], item["role"])
    if role not in ("system", "developer", "user", "assistant", "tool"):
        loss.add_guess(f"that '{role}' is the user", index)
        role = "user"
    content: object = item.get("content")
    if not isinstance(content, str | None) and not is_native({"messages": [{"role": role, "content": content}]}):
        loss.add_guess("message text, from content of an unknown shape", index)
        content = text_of(content) or as_text(content)
    message: Message = {"role": role, "content": content}
    if isinstance(item.get("name"), str):
        message["name"] = item["name"]
    calls: object = item.get("tool_calls")
    if isinstance(calls, list) and calls and role == "assistant":
        message["tool_calls"] = [
            call for entry in cast("list[Any]", calls) if (call := _logged_call(entry, index, loss))
        ]
    if role == "tool" and (called := item.get("tool_call_id") or item.get("id")) is not None:
        message["tool_call_id"] = str(called)
    if role == "tool":
        state_outcome(message, stated_outcome(item))
    others = {key: value for key, value in item.items() if key not in _KEYS and value is not None}
    for key in others:
        loss.unknown(key, index)
    set_aside(message, "logged", others)
    return message


def _logged_call(value: Any, index: int, loss: Loss) -> Row | None:
    call = fields_in(value)
    if call.get("type") == "custom" and (custom := fields_in(call.get("custom"))):
        call = {"id": call.get("id"), "name": custom.get("name"), "arguments": {"input": custom.get("input")}}
    inner = fields_in(call.get("function")) or call
    name = inner.get("name")
    if not isinstance(name, str):
        loss.add_dropped("a tool call without a name", index)
        return None
    arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
    identity = call.get("id") or call.get("tool_call_id")
    return tool_call(None if identity is None else str(identity), name, arguments)
