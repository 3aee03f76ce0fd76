"""Anthropic's Messages: content in blocks, calls as `tool_use`, results within user messages.

A user message that mixes results and words becomes the messages of the tools and one of the user. Thinking and the
blocks of Anthropic's own tools are kept in the metadata.
Source: the Messages reference of Anthropic's API, and the types of its Python package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    arguments_of,
    did_fail,
    name_of,
    set_aside,
    split_data_url,
    state_outcome,
    taken_back,
    text_of,
    tool_call,
)

NAME = "anthropic"
_OWN_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document")
_OWN_KEYS = {"image": "source", "text": "citations"}
"""Keys that only Anthropic's blocks of these types have."""
_ROLES = ("user", "assistant", "system")


def _blocks(item: Any) -> list[Row]:
    content: object = cast("Row", item).get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("Row", block) for block in blocks if isinstance(block, dict)]


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and cast("Row", item).get("role") in _ROLES and "tool_calls" not in item


def _is_certain(item: Any) -> bool:
    """Return whether a message has blocks of its own, or an image with its source or a text with its citations."""
    return _is_message(item) and any(
        block.get("type") in _OWN_BLOCKS or _OWN_KEYS.get(str(block.get("type"))) in block for block in _blocks(item)
    )


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    messages: list[Message] = []
    if (instructions := beside.pop("system", None)) is not None:
        system: Message = {"role": "system", "content": text_of(instructions)}
        set_aside(
            system, NAME, {"beside": True, **({} if isinstance(instructions, str) else {"content": instructions})}
        )
        messages.append(system)
    for index, item in enumerate(items):
        if not _is_message(item):
            raise Unreadable(f"message {index}: needs a role, user, assistant or system, and content")
        message = cast("Row", item)
        read = _assistant if message["role"] == "assistant" else _user_messages
        first = len(messages)
        messages += read(message, index, loss)
        extra = {key: value for key, value in message.items() if key not in ("role", "content")}
        for key in extra:
            loss.unknown(key, index)
        if len(messages) > first:
            set_aside(messages[first], NAME, extra)
    return messages


def _assistant(message: Row, index: int, loss: Loss) -> list[Message]:
    if isinstance(message.get("content"), str):
        return [{"role": "assistant", "content": message["content"]}]
    calls: list[Row] = []
    words: list[str] = []
    plain = True
    for block in _blocks(message):
        match block.get("type"):
            case "text":
                words.append(str(block.get("text")))
                plain = plain and block.keys() <= {"type", "text"} and not calls
            case "tool_use":
                calls.append(tool_call(_id(block, "id", index), str(block.get("name")), block.get("input")))
                plain = plain and block.keys() <= {"type", "id", "name", "input"}
            case kind:
                plain = False
                loss.aside(str(kind), index)
    reply: Message = {"role": "assistant", "content": join_text_parts(words) if words else None}
    if calls:
        reply["tool_calls"] = calls
    if not plain or len(words) > 1 or (not words and not calls):
        set_aside(reply, NAME, {"content": message.get("content")})
    elif not calls:
        set_aside(reply, NAME, {"blocks": True})
    return [reply]


def _user_messages(message: Row, index: int, loss: Loss) -> list[Message]:
    """Return the results that a message of the user holds, and what the user said."""
    role = message["role"]
    if isinstance(message.get("content"), str):
        return [{"role": role, "content": message["content"]}]
    messages: list[Message] = []
    parts: list[Row] = []
    for block in _blocks(message):
        if block.get("type") == "tool_result":
            messages.append(_result(block, index, loss))
        elif (part := _part(block)) is not None:
            parts.append(part)
        else:
            loss.add_dropped(str(block.get("type")), index)
    if parts:
        messages.append({"role": role, "content": parts})
    return messages


def _result(block: Row, index: int, loss: Loss) -> Message:
    content = block.get("content")
    message: Message = {"role": "tool", "content": text_of(content), "tool_call_id": _id(block, "tool_use_id", index)}
    read = ["type", "tool_use_id", "content"]
    if isinstance(is_error := block.get("is_error"), bool):
        state_outcome(message, "failed" if is_error else "succeeded")
        read.append("is_error")
    extra = {key: value for key, value in block.items() if key not in read}
    if content is None or isinstance(content, list):
        extra["content"] = cast("Any", content)
        others = [part for part in _blocks(block) if part.get("type") != "text"]
        if others:
            loss.aside("parts of a result that are not text", index, len(others))
    set_aside(message, NAME, extra)
    return message


def _id(block: Row, key: str, index: int) -> str | None:
    identity = block.get(key)
    if identity is None or isinstance(identity, str):
        return identity
    raise Unreadable(f"message {index}: '{key}' is a text, not {type(identity).__name__}")


def _part(block: Row) -> Row | None:
    """Return a block of the user as a part of ours, None if ours has no such part; what is more is kept next to it."""
    source = cast("Row", block.get("source") or {})
    match block.get("type"), source.get("type"):
        case "text", _:
            return {"type": "text", "text": str(block.get("text")), **_more(block, "text")}
        case "image", "base64":
            url = f"data:{source.get('media_type')};base64,{source.get('data')}"
            return {"type": "image_url", "image_url": {"url": url}, **_more(block, "source")}
        case "image", "url":
            return {"type": "image_url", "image_url": {"url": str(source.get("url"))}, **_more(block, "source")}
        case _:
            return None


def _more(block: Row, key: str) -> Row:
    return {name: value for name, value in block.items() if name not in ("type", key)}


def _write(messages: list[Message], loss: Loss) -> Row:
    row: Row = {}
    entries: list[Row] = []
    for index, message in enumerate(messages):
        extra = taken_back(message, NAME)
        if message["role"] in ("system", "developer") and (extra.pop("beside", False) or (index == 0 and not extra)):
            row["system"] = extra.get("content", text_of(message.get("content")))
            continue
        entry = _entry(message, extra, index, loss)
        after_results = entries and entries[-1]["role"] == "user" and messages[index - 1]["role"] == "tool"
        if entry["role"] == "user" and after_results:
            entries[-1]["content"] += _as_blocks(entry.pop("content"))
            entries[-1].update(entry)
        else:
            entries.append(entry)
    return {**row, "messages": entries}


def _entry(message: Message, extra: Row, index: int, loss: Loss) -> Row:
    content: object = message.get("content")
    match message["role"]:
        case "tool":
            block = {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": content, **extra}
            if message.get("outcome") is not None:
                block["is_error"] = did_fail(message)
            if block["content"] is None:
                del block["content"]
            return {"role": "user", "content": [block]}
        case "assistant":
            whole = extra.pop("content", None)
            as_blocks = extra.pop("blocks", False) or bool(message.get("tool_calls"))
            if whole is None:
                whole = [*_as_blocks(content), *map(_use, message.get("tool_calls") or ())] if as_blocks else content
            return {"role": "assistant", "content": whole, **extra}
        case role:
            if isinstance(content, list):
                parts = [_block(part, index, loss) for part in cast("list[Row]", content)]
                content = [part for part in parts if part is not None]
            return {"role": "user" if role == "user" else "system", "content": content, **extra}


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return cast("list[Any]", content)
    return [{"type": "text", "text": content}] if content else []


def _use(call: Row) -> Row:
    return {"type": "tool_use", "id": call.get("id"), "name": name_of(call), "input": arguments_of(call)}


def _block(part: Row, index: int, loss: Loss) -> Row | None:
    match part.get("type"):
        case "text":
            return part
        case "image_url":
            url = str(part["image_url"]["url"])
            more = {key: value for key, value in part.items() if key not in ("type", "image_url")}
            return {"type": "image", "source": _source(url), **more}
        case kind:
            loss.add_dropped(str(kind), index)
            return None


def _source(url: str) -> Row:
    if (media := split_data_url(url)) is None:
        return {"type": "url", "url": url}
    kind, data = media
    return {"type": "base64", "media_type": kind, "data": data}


FORMAT = Messages(
    NAME, "Anthropic Messages", ("messages",), _is_certain, _is_message, _read, _write, keeps_outcomes=True
).format()
