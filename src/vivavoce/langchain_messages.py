"""Messages of LangChain: what their fields mean, and its objects and those of Ragas as plain data.

Objects are known by their shape; nothing of either package is imported. LangChain's messages in files have the same
fields: the format of those (`exchange/langchain.py`) reads them as it is said here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from vivavoce.comparing.text import join_text_parts

ROLES = {
    **dict.fromkeys(("human", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("tool", "ToolMessageChunk", "function", "FunctionMessageChunk"), "tool"),
}
"""The role of each type of message."""
_OWN = ("id", "response_metadata", "usage_metadata", "additional_kwargs", "artifact", "status")
"""What LangChain knows of a message besides; it is kept in the metadata."""
_OF_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta")
"""Blocks of a content that say once more which tools are called."""
_MAY_CALL = ("tool_calls", "invalid_tool_calls", "additional_kwargs", "content")
"""Where a message has its calls."""

LANGCHAIN = "langchain"
_NONE = object()


def as_row(thing: object) -> dict[str, Any] | None:
    """Return a message object as a dict in the shape of OpenAI's chat, None for anything else."""
    role = role_of(thing)
    if role is None:
        return None
    content: Any = attribute(thing, "content")
    content, unread = content_of(cast("list[Any]", content), role) if isinstance(content, list) else (content, [])
    row: dict[str, Any] = {"role": role, "content": content}
    calls = calls_of({name: attribute(thing, name) for name in _MAY_CALL}) if role == "assistant" else []
    if calls:
        row["tool_calls"] = calls
    row |= {name: value for name in ("name", "tool_call_id") if (value := attribute(thing, name))}
    if metadata := _metadata(thing, calls, unread):
        row["metadata"] = metadata
    return row


def role_of(thing: object) -> str | None:
    """Return the role of a message object, None for anything else."""
    kind = attribute(thing, "type")
    role = ROLES.get(kind) if isinstance(kind, str) else None
    if role is None or isinstance(thing, Mapping):
        return None
    return (
        role if attribute(thing, "role", _NONE) is _NONE and attribute(thing, "content", _NONE) is not _NONE else None
    )


def attribute(thing: object, name: str, default: object = None) -> Any:
    """Return an attribute of an object, or the default; a model of pydantic, slow to say that it has none, is read."""
    if isinstance(thing, BaseModel) and not thing.__pydantic_extra__:
        return thing.__dict__.get(name, default)
    return getattr(thing, name, default)


def content_of(blocks: list[Any], role: str) -> tuple[str | list[dict[str, Any]] | None, list[Any]]:
    """Return the blocks of a content as ours, and those that ours has no part for.

    What others than the user say is a text, if there is nothing but text; blocks that repeat a call are left out.
    """
    parts: list[dict[str, Any]] = []
    unread: list[Any] = []
    for block in blocks:
        part = _part(block)
        if part is not None:
            parts.append(part)
        elif not isinstance(block, Mapping) or cast("Mapping[str, Any]", block).get("type") not in _OF_CALLS:
            unread.append(block)
    if role == "user" or not parts or not all(part["type"] == "text" for part in parts):
        return parts or None, unread
    return join_text_parts(part["text"] for part in parts), unread


def _part(block: Any) -> dict[str, Any] | None:
    """Return a block as a part of ours, None if ours has no such part."""
    match block:
        case str() | {"type": "text", "text": str()}:
            return {"type": "text", "text": block if isinstance(block, str) else block["text"]}
        case {"type": "image_url", "image_url": {"url": str()}}:
            return dict(block)
        case {"type": "image_url", "image_url": str(url)} | {"type": "image", "url": str(url)}:
            return _image(url)
        case {"type": "image", "base64": str(data)} | {"type": "image", "data": str(data)}:
            return _image(f"data:{block.get('mime_type') or 'image/png'};base64,{data}")
        case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": kind}}:
            return _image(f"data:{kind};base64,{data}")
        case _:
            return None


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def calls_of(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message, each with its `name` and `args`, and with its `id` if it has one.

    Arguments that are not JSON are the text that the model wrote. Old messages have their calls only as a
    provider wrote them: next to the content as OpenAI's, or as blocks of it.
    """
    calls = [*_fields_of(fields.get("tool_calls")), *_fields_of(fields.get("invalid_tool_calls"))]
    if calls:
        return [_call(call, call.get("name"), call.get("args")) for call in calls]
    beside: Any = fields.get("additional_kwargs")
    wire = _fields_of(cast("Mapping[str, Any]", beside).get("tool_calls")) if isinstance(beside, Mapping) else []
    if wire:
        pairs = ((call, cast("Mapping[str, Any]", call.get("function") or call)) for call in wire)
        return [_call(call, function.get("name"), function.get("arguments")) for call, function in pairs]
    blocks = [block for block in _fields_of(fields.get("content")) if block.get("type") == "tool_use"]
    return [_call(block, block.get("name"), block.get("input")) for block in blocks]


def _call(call: Mapping[str, Any], name: object, arguments: object) -> dict[str, Any]:
    known = {"id": call.get("id"), "name": name, "args": arguments}
    return {"args": {}, **{key: value for key, value in known.items() if value is not None}}


def _fields_of(calls: object) -> list[Mapping[str, Any]]:
    """Return what the calls or blocks of a list hold, be they mappings or objects."""
    if not isinstance(calls, list | tuple):
        return []
    mappings = (_fields(entry) for entry in cast("Iterable[object]", calls))
    return [fields for fields in mappings if fields is not None]


def _fields(thing: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", thing) if isinstance(thing, Mapping) else getattr(thing, "__dict__", None)


def _metadata(thing: object, calls: list[dict[str, Any]], unread: list[Any]) -> dict[str, Any]:
    own = {name: value for name in _OWN if (value := attribute(thing, name)) and value != "success"}
    if calls and isinstance(more := own.get("additional_kwargs"), Mapping):
        more = {key: value for key, value in cast("Mapping[str, Any]", more).items() if key != "tool_calls"}
        own = {**own, "additional_kwargs": more} if more else {k: v for k, v in own.items() if k != "additional_kwargs"}
    if unread:
        own["blocks"] = unread
    metadata: dict[str, Any] = dict(attribute(thing, "metadata") or {})
    if own:
        metadata[LANGCHAIN] = to_jsonable_python(own, fallback=str)
    return metadata
