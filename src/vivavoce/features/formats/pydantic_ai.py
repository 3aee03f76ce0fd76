"""Pydantic AI's messages: requests and responses in parts, as `ModelMessagesTypeAdapter` and `all_messages_json` write.

Each part of a request is a message of ours. A response is one, and what a provider's own tool returned in it ends it.
A request to the model to try again without a call is a system message. Empty fields are not written.
Source: the classes in `pydantic_ai.messages`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from vivavoce.comparing.call_outcomes import read_outcome
from vivavoce.comparing.text import join_text_parts
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    arguments_of,
    difference,
    embedded,
    name_of,
    restored,
    set_aside,
    state_outcome,
    taken_back,
    text_of,
    tool_call,
)

NAME = "pydantic-ai"
_CALLS = frozenset(("tool-call", "builtin-tool-call"))
_RETURNS = frozenset(("tool-return", "builtin-tool-return"))
_SYSTEM = frozenset(("system-prompt", "retry-prompt", "retry-feedback"))
_TOLD_ASIDE = ("usage", "metadata", "provider_details")
_GAP = "\n\n"
"""What Pydantic AI puts between texts of a response that do not directly follow each other; those that do it joins."""
_WRITTEN_OUTCOMES = {"failed": "failed", "refused": "denied"}


def _parts(item: Any) -> list[Row] | None:
    """Return the parts of a message, None if it is not one."""
    if not isinstance(item, Mapping) or cast("Row", item).get("kind") not in ("request", "response"):
        return None
    parts = cast("Row", item).get("parts")
    listed = cast("list[Any]", parts) if isinstance(parts, list) else [None]
    is_one = all(isinstance(part, dict) and isinstance(cast("Row", part).get("part_kind"), str) for part in listed)
    return list(map(_without_none, cast("list[Row]", listed))) if is_one else None


def _without_none(fields: Mapping[str, Any]) -> Row:
    return {key: value for key, value in fields.items() if value is not None or key == "content"}


class _Reader:
    """Makes messages of requests and responses."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self._instructions: Any = None

    def read(self, item: Row, parts: list[Row], index: int) -> list[Message]:
        """Return the messages of one request or response; there may be none."""
        fields = {key: value for key, value in _without_none(item).items() if key not in ("parts", "kind")}
        for key in _TOLD_ASIDE:
            if fields.get(key):
                self._loss.aside(key, index)
        told = fields.pop("instructions", None)
        read: list[Message] = []
        if isinstance(told, str) and told != self._instructions:
            read.append({"role": "system", "content": told})
            set_aside(read[0], NAME, {"instructions": True})
        elif isinstance(told, str):
            fields["instructions"] = True
        self._instructions = told if isinstance(told, str) else self._instructions
        is_request = item["kind"] == "request"
        time = fields.get("timestamp")
        said = self._request(parts, index) if is_request else self._response(parts, index, time)
        written = _written(said, item["kind"])
        kept: Row = {"fields": fields} if fields else {}
        if written != parts:
            kept["layout"] = _layout(said, parts)
        read += said
        if not read and (kept or parts):
            self._loss.dropped(f"a {item['kind']} without a message", index)
        elif read:
            set_aside(read[0], NAME, {**kept, "kind": item["kind"], "of": len(read)})
        return read

    def _request(self, parts: list[Row], index: int) -> list[Message]:
        read: list[Message] = []
        for part in parts:
            kind = part["part_kind"]
            if kind in _RETURNS or (kind == "retry-prompt" and part.get("tool_name") is not None):
                message = _returned(part)
            elif kind in _SYSTEM:
                message = {"role": "system", "content": _as_text(part.get("content"))}
            elif kind == "user-prompt":
                message = {"role": "user", "content": self._content(part.get("content"), index)}
            else:
                self._loss.aside(kind, index)
                continue
            if isinstance(part.get("timestamp"), str):
                message["timestamp"] = part["timestamp"]
            read.append(message)
        return read

    def _content(self, content: Any, index: int) -> Any:
        if not isinstance(content, list):
            return _as_text(content)
        parts: list[Row] = []
        for one in cast("list[Any]", content):
            if (part := _part(one)) is not None:
                parts.append(part)
            else:
                kind = cast("Row", one).get("kind") if isinstance(one, dict) else None
                self._loss.aside(str(kind or "a part of a prompt"), index)
        return parts

    def _response(self, parts: list[Row], index: int, time: Any) -> list[Message]:
        read: list[Message] = []
        follows_text = False
        for part in parts:
            kind = part["part_kind"]
            if kind in _RETURNS:
                read.append(_returned(part))
                continue
            if not read or read[-1]["role"] == "tool":
                read.append({"role": "assistant", "content": None})
                if isinstance(time, str):
                    read[-1]["timestamp"] = time
            if kind in _CALLS:
                call = tool_call(part.get("tool_call_id"), str(part.get("tool_name")), part.get("args"))
                read[-1].setdefault("tool_calls", []).append(call)
            elif kind == "text":
                before = read[-1]["content"]
                gap = "" if before is None or follows_text else _GAP
                read[-1]["content"] = join_text_parts([before or "", gap, _as_text(part.get("content"))])
            else:
                self._loss.aside(kind, index)
            follows_text = kind == "text"
        return read


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    reader = _Reader(loss)
    messages: list[Message] = []
    names: set[str] = set()
    for index, item in enumerate(items):
        parts = _parts(item)
        if parts is None:
            raise Unreadable(f"message {index}: needs a kind, request or response, and parts with a part_kind")
        if any(not isinstance(part.get("tool_call_id", ""), str) for part in parts):
            raise Unreadable(f"message {index}: 'tool_call_id' is a text")
        messages += reader.read(cast("Row", item), parts, index)
        if isinstance(name := item.get("conversation_id"), str):
            names.add(name)
    if len(names) == 1:
        beside.setdefault("id", names.pop())
    return messages


def _returned(part: Row) -> Message:
    called = part.get("tool_call_id")
    message: Message = {"role": "tool", "content": _as_text(part.get("content"))}
    if isinstance(name := part.get("tool_name"), str):
        message["name"] = name
    outcome = "failed" if part["part_kind"] == "retry-prompt" else read_outcome(part.get("outcome"))
    state_outcome(message, None if outcome == "succeeded" else outcome)  # which is the default, whatever came back
    return {**message, "tool_call_id": called if isinstance(called, str) else None}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _part(one: Any) -> Row | None:
    """Return a part of a prompt as ours, None if ours has no such part."""
    match one:
        case str():
            return {"type": "text", "text": one}
        case {"kind": "text-content" | "text", "content": str(text)}:
            return {"type": "text", "text": text}
        case {"kind": "image-url", "url": str(url)}:
            return _image(url)
        case {"kind": "binary", "data": str(data), "media_type": str(kind)}:
            url = f"data:{kind};base64,{data}"
            return _image(url) if kind.startswith("image/") else {"type": "file", "file": {"file_data": url}}
        case _:
            return None


def _image(url: str) -> Row:
    return {"type": "image_url", "image_url": {"url": url}}


def _layout(said: list[Message], parts: list[Row]) -> list[Row]:
    """Return what each part is made of: a message or call of ours, changed, or else the part itself."""
    layout: list[Row] = []
    at = -1
    calls: list[Row] = []
    spoken = _place_of_only_text(said, parts)
    for part in parts:
        kind = part["part_kind"]
        if kind in _CALLS:
            at, calls = _next_with_calls(said, at, calls)
            call = calls.pop(0)
            raw = isinstance(part.get("args"), str)
            layout.append({"at": at, "call": difference(_call_part(call, raw=raw), part), "raw": raw})
        elif kind in _RETURNS or kind in _SYSTEM or kind == "user-prompt":
            at = next(place for place in range(at + 1, len(said)) if said[place]["role"] != "assistant")
            layout.append({"at": at, "part": difference(_own_part(said[at]), part)})
        elif kind == "text" and spoken is not None:
            layout.append({"at": spoken, "text": difference(_text_part(said[spoken]), part)})
        else:
            layout.append({"whole": part})
    return layout


def _place_of_only_text(said: list[Message], parts: list[Row]) -> int | None:
    texts = [part.get("content") for part in parts if part["part_kind"] == "text"]
    if len(texts) != 1 or not isinstance(texts[0], str):
        return None
    return next(
        at for at, message in enumerate(said) if message["role"] == "assistant" and message["content"] == texts[0]
    )


def _next_with_calls(said: list[Message], at: int, calls: list[Row]) -> tuple[int, list[Row]]:
    """Return where the next call stands, and the calls from it on."""
    if calls:
        return at, calls
    place = next(place for place in range(max(at, 0), len(said)) if said[place].get("tool_calls") and place != at)
    return place, list(cast("list[Row]", said[place]["tool_calls"]))


def _written(messages: list[Message], kind: str) -> list[Row]:
    """Return the parts of messages, as they are where nothing else is known."""
    if kind == "request":
        return list(map(_own_part, messages))
    parts: list[Row] = []
    for message in messages:
        if message["role"] == "tool":
            parts.append({**_own_part(message), "part_kind": "builtin-tool-return"})
            continue
        calls = cast("list[Row]", message.get("tool_calls") or [])
        parts += [_text_part(message)] if message.get("content") or not calls else []
        parts += [_call_part(call, raw=False) for call in calls]
    return parts


def _own_part(message: Message) -> Row:
    time = {"timestamp": message["timestamp"]} if message.get("timestamp") is not None else {}
    content: Any = message.get("content")
    match message["role"]:
        case "tool":
            outcome = _WRITTEN_OUTCOMES.get(message.get("outcome") or "", "success")
            part = {"part_kind": "tool-return", "tool_name": message.get("name"), "content": content}
            return {**part, "tool_call_id": message.get("tool_call_id"), "outcome": outcome, **time}
        case "user":
            if isinstance(content, list):
                content = list(map(_written_part, cast("list[Row]", content)))
            return {"part_kind": "user-prompt", "content": content, **time}
        case _:
            return {"part_kind": "system-prompt", "content": content, **time}


def _written_part(part: Row) -> Any:
    match part:
        case {"type": "text", "text": text}:
            return text
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "file", "file": {"file_data": str(url)}}:
            if (held := embedded(url)) is not None:
                kind, data = held
                return {"kind": "binary", "data": data, "media_type": kind}
            return {"kind": "image-url", "url": url}
        case _:
            return text_of([part])


def _text_part(message: Message) -> Row:
    return {"part_kind": "text", "content": text_of(message.get("content"))}


def _call_part(call: Row, *, raw: bool) -> Row:
    args: Any = (call.get("function") or call).get("arguments") if raw else arguments_of(call)
    return {"part_kind": "tool-call", "tool_name": name_of(call), "args": args, "tool_call_id": call.get("id")}


def _write(messages: list[Message], loss: Loss) -> Row:
    written: list[Row] = []
    instructions: str | None = None
    at = 0
    names = {call.get("id"): name_of(call) for message in messages for call in message.get("tool_calls") or ()}
    while at < len(messages):
        kept = taken_back(messages[at], NAME)
        group = messages[at : at + (kept["of"] if "of" in kept else _length(messages, at))]
        for number, message in enumerate(group, at):
            _tell(message, number, loss)
        kind = kept.get("kind") or ("response" if group[0]["role"] == "assistant" else "request")
        fields: Row = dict(kept.get("fields") or {})
        if kept.get("instructions"):
            instructions, group = cast("str", group[0]["content"]), group[1:]
            fields["instructions"] = instructions
        elif fields.get("instructions"):
            fields["instructions"] = instructions
        named = [_named(message, names) for message in group]
        parts = _restored(named, kept["layout"]) if "layout" in kept else _written(named, kind)
        if "kind" not in kept and kind == "response" and named[0].get("timestamp") is not None:
            fields["timestamp"] = named[0]["timestamp"]
        written.append({"kind": kind, "parts": parts, **fields})
        at += max(1, len(group) + bool(kept.get("instructions")))
    return {"messages": written}


def _named(message: Message, names: Mapping[Any, str]) -> Message:
    """Return a result with the name of its tool, which this format must have."""
    if message["role"] != "tool" or message.get("name") is not None:
        return message
    return {**message, "name": names.get(message.get("tool_call_id"), "unknown")}


def _length(messages: list[Message], at: int) -> int:
    """Return how many messages from here on are one request, or the one that is a response."""
    if messages[at]["role"] == "assistant":
        return 1
    others = range(at + 1, len(messages))
    ends = (place for place in others if messages[place]["role"] == "assistant" or taken_back(messages[place], NAME))
    return next(ends, len(messages)) - at


def _tell(message: Message, index: int, loss: Loss) -> None:
    if message.get("retrieval_context") is not None:
        loss.dropped("'retrieval_context' of a message", index)
    if message.get("name") is not None and message["role"] != "tool":
        loss.dropped("'name' of a message", index)


def _restored(group: list[Message], layout: list[Row]) -> list[Row]:
    parts: list[Row] = []
    left = [list(cast("list[Row]", message.get("tool_calls") or [])) for message in group]
    for one in layout:
        at = cast("int", one.get("at", 0))
        if "whole" in one:
            parts.append(one["whole"])
        elif at >= len(group):
            continue
        elif "part" in one:
            parts.append(restored(_own_part(group[at]), one["part"]))
        elif "text" in one:
            parts.append(restored(_text_part(group[at]), one["text"]))
        elif left[at]:
            parts.append(restored(_call_part(left[at].pop(0), raw=bool(one.get("raw"))), one["call"]))
    return parts


FORMAT = Messages(
    NAME,
    "Pydantic AI messages",
    ("messages", "all_messages"),
    lambda item: _parts(item) is not None,
    lambda item: _parts(item) is not None,
    _read,
    _write,
    keeps_outcomes=True,
).format()
