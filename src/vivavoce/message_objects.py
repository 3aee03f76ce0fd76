"""Message objects of LangChain and Ragas, read by their shape: nothing of either is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic_core import to_jsonable_python

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_CHUNKS = {f"{name}MessageChunk": role for name, role in (("Human", "user"), ("AI", "assistant"), ("Tool", "tool"))}
_OWN = ("id", "response_metadata", "usage_metadata", "additional_kwargs", "artifact", "status")
"""What LangChain knows of a message besides; it is kept in the metadata."""
_OF_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta")
"""Parts of a content that say once more which tools are called."""

LANGCHAIN = "langchain"


def as_row(thing: object) -> dict[str, Any] | None:
    """Return a message object as a dict in the shape of OpenAI's chat, None for anything else."""
    role = role_of(thing)
    if role is None:
        return None
    row: dict[str, Any] = {"role": role, "content": _content(getattr(thing, "content", None))}
    calls = [*map(_call, _listed(thing, "tool_calls")), *map(_call, _listed(thing, "invalid_tool_calls"))]
    if calls:
        row["tool_calls"] = calls
    row |= {name: value for name in ("name", "tool_call_id") if (value := getattr(thing, name, None))}
    if metadata := _metadata(thing, calls):
        row["metadata"] = metadata
    return row


def role_of(thing: object) -> str | None:
    """Return the role of a message object, None for anything else."""
    kind = getattr(thing, "type", None)
    if (
        not isinstance(kind, str)
        or isinstance(thing, Mapping)
        or hasattr(thing, "role")
        or not hasattr(thing, "content")
    ):
        return None
    return _ROLES.get(kind) or _CHUNKS.get(kind)


def _listed(thing: object, name: str) -> Iterable[object]:
    return cast("Iterable[object]", getattr(thing, name, None) or ())


def _call(call: object) -> dict[str, Any]:
    """Return a call with its id, name and arguments, which are text where they could not be read."""
    fields = cast("Mapping[str, Any]", call) if isinstance(call, Mapping) else vars(call)
    known = {name: fields[name] for name in ("id", "name", "args") if fields.get(name) is not None}
    return {"args": {}, **known}


def _content(content: object) -> object:
    if not isinstance(content, list):
        return content
    parts = [_part(part) for part in cast("list[object]", content)]
    return [part for part in parts if part is not None] or None


def _part(part: object) -> object | None:
    """Return a part of a content; one that is a text without its annotations, one that is a call not at all."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping):
        return part
    fields = cast("Mapping[str, Any]", part)
    if fields.get("type") in _OF_CALLS:
        return None
    return {"type": "text", "text": fields["text"]} if fields.get("type") == "text" else fields


def _metadata(thing: object, calls: list[dict[str, Any]]) -> dict[str, Any]:
    own = {name: value for name in _OWN if (value := getattr(thing, name, None)) and value != "success"}
    if calls and isinstance(more := own.get("additional_kwargs"), Mapping):
        more = {key: value for key, value in cast("Mapping[str, Any]", more).items() if key != "tool_calls"}
        own = {**own, "additional_kwargs": more} if more else {k: v for k, v in own.items() if k != "additional_kwargs"}
    kept: dict[str, Any] = dict(getattr(thing, "metadata", None) or {})
    if own:
        kept[LANGCHAIN] = to_jsonable_python(own, fallback=str)
    return kept
