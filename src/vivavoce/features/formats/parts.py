"""Messages in parts, as OpenTelemetry's conventions for generative AI have them.

A message that holds what tools returned becomes a message for each result. Thoughts, and parts of models' own tools,
are kept in the metadata.
Source: the JSON schemas and models of `gen_ai.input.messages` in open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

import json
from typing import Any, cast

from vivavoce.comparing.call_outcomes import stated_outcome
from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.messages_of_formats import Message, set_aside, taken_back, text_of
from vivavoce.conversations.shapes import arguments_of, embedded, name_of, state_outcome, tool_call

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
        message = _assistant(others, index, loss) if role == "assistant" else _said(role, others, index, loss)
        messages.append(message)
    kept = {key: value for key, value in item.items() if key not in ("role", "parts", "name") and value is not None}
    for key in kept:
        if key != "finish_reason":
            loss.unknown(key, index)
    if isinstance(item.get("name"), str):
        messages[-1]["name"] = item["name"]
    set_aside(messages[-1], NAME, kept)
    return messages


def write_message(message: Message, index: int, loss: Loss) -> Row:
    """Return a message of ours in parts."""
    kept = taken_back(message, NAME)
    role = kept.pop("role", message["role"])
    parts: list[Row] | None = kept.pop("parts", None)
    in_json = kept.pop("json", False)
    key = kept.pop("key", "response")
    kept.pop("with_next", None)
    if message["role"] == "tool":
        content: Any = text_of(message.get("content"))
        value = parse(content) if in_json else content
        parts = [{"type": "tool_call_response", "id": message.get("tool_call_id"), key: value}]
    elif parts is None:
        parts = [*_parts(message.get("content"), index, loss), *map(_call, message.get("tool_calls") or ())]
    name = {"name": message["name"]} if message.get("name") else {}
    return {"role": role, "parts": parts, **name, **kept}


def _role(role: Any, index: int, loss: Loss) -> str:
    known = _ROLES.get(role) if isinstance(role, str) else None
    if known is None:
        loss.guessed(f"that '{role}' is the user", index)
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


def _said(role: str, parts: list[Row], index: int, loss: Loss) -> Message:
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
    kept: Row = {} if isinstance(value, str) else {"json": True}
    kept |= {} if key == "response" else {"key": key}
    kept |= {} if role == "tool" else {"role": role}
    set_aside(message, NAME, kept)
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
    found: list[Row] = []
    for one in cast("list[Row]", content):
        if (part := _part(one)) is not None:
            found.append(part)
        else:
            loss.dropped(str(one.get("type")), index)
    return found


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
    if (held := embedded(url)) is None:
        return {"type": "uri", "modality": "image", "uri": url}
    kind, data = held
    return {"type": "blob", "modality": "image", "mime_type": kind, "content": data}


def _call(call: Row) -> Row:
    return {"type": "tool_call", "id": call.get("id"), "name": name_of(call), "arguments": arguments_of(call)}


def parsed(value: Any) -> Any:
    """Return what a text of JSON holds; a text that is not one, and any other value, as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse(value)
        except BrokenJson:
            return value
    return value
