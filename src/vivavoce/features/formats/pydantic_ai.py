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
    name_of,
    restore,
    set_aside,
    split_data_url,
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
    entries = cast("list[Any]", parts) if isinstance(parts, list) else [None]
    is_one = all(isinstance(part, dict) and isinstance(cast("Row", part).get("part_kind"), str) for part in entries)
    return list(map(_without_none, cast("list[Row]", entries))) if is_one else None


def _without_none(fields: Mapping[str, Any]) -> Row:
    return {key: value for key, value in fields.items() if value is not None or key == "content"}


class _Reader:
    """Makes messages of requests and responses."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self._instructions: Any = None

    def read(self, item: Row, parts: list[Row], index: int) -> list[Message]:
        """Return the messages of one request or response, possibly empty."""
        fields = {key: value for key, value in _without_none(item).items() if key not in ("parts", "kind")}
        for key in _TOLD_ASIDE:
            if fields.get(key):
                self._loss.aside(key, index)
        instructions = fields.pop("instructions", None)
        read: list[Message] = []
        if isinstance(instructions, str) and instructions != self._instructions:
            read.append({"role": "system", "content": instructions})
            set_aside(read[0], NAME, {"instructions": True})
        elif isinstance(instructions, str):
            fields["instructions"] = True
        self._instructions = instructions if isinstance(instructions, str) else self._instructions
        is_request = item["kind"] == "request"
        time = fields.get("timestamp")
        messages = self._request(parts, index) if is_request else self._response(parts, index, time)
        parts_of_ours = _write_parts(messages, item["kind"])
        extra: Row = {"fields": fields} if fields else {}
        if parts_of_ours != parts:
            extra["layout"] = _layout(messages, parts)
        read += messages
        if not read and (extra or parts):
            self._loss.add_dropped(f"a {item['kind']} without a message", index)
        elif read:
            set_aside(read[0], NAME, {**extra, "kind": item["kind"], "of": len(read)})
        return read

    def _request(self, parts: list[Row], index: int) -> list[Message]:
        read: list[Message] = []
        for part in parts:
            kind = part["part_kind"]
            if kind in _RETURNS or (kind == "retry-prompt" and part.get("tool_name") is not None):
                message = _tool_result(part)
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
        for item in cast("list[Any]", content):
            if (part := _part(item)) is not None:
                parts.append(part)
            else:
                kind = cast("Row", item).get("kind") if isinstance(item, dict) else None
                self._loss.aside(str(kind or "a part of a prompt"), index)
        return parts

    def _response(self, parts: list[Row], index: int, time: Any) -> list[Message]:
        read: list[Message] = []
        follows_text = False
        for part in parts:
            kind = part["part_kind"]
            if kind in _RETURNS:
                read.append(_tool_result(part))
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
            raise Unreadable(f"message {index}: needs a kind (request or response) and parts with a part_kind")
        if any(not isinstance(part.get("tool_call_id", ""), str) for part in parts):
            raise Unreadable(f"message {index}: non-text 'tool_call_id'")
        messages += reader.read(cast("Row", item), parts, index)
        if isinstance(name := item.get("conversation_id"), str):
            names.add(name)
    if len(names) == 1:
        beside.setdefault("id", names.pop())
    return messages


def _tool_result(part: Row) -> Message:
    called = part.get("tool_call_id")
    message: Message = {"role": "tool", "content": _as_text(part.get("content"))}
    if isinstance(name := part.get("tool_name"), str):
        message["name"] = name
    outcome = "failed" if part["part_kind"] == "retry-prompt" else read_outcome(part.get("outcome"))
    state_outcome(message, None if outcome == "succeeded" else outcome)  # which is the default, whatever came back
    return {**message, "tool_call_id": called if isinstance(called, str) else None}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _part(item: Any) -> Row | None:
    """Return a part of a prompt as ours, None if ours has no such part."""
    match item:
        case str():
            return {"type": "text", "text": item}
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


def _layout(messages: list[Message], parts: list[Row]) -> list[Row]:
    """Return what each part is made of: a message or call of ours, changed, or else the part itself."""
    layout: list[Row] = []
    at = -1
    calls: list[Row] = []
    text_place = _place_of_only_text(messages, parts)
    for part in parts:
        kind = part["part_kind"]
        if kind in _CALLS:
            at, calls = _next_with_calls(messages, at, calls)
            call = calls.pop(0)
            raw = isinstance(part.get("args"), str)
            layout.append({"at": at, "call": difference(_call_part(call, raw=raw), part), "raw": raw})
        elif kind in _RETURNS or kind in _SYSTEM or kind == "user-prompt":
            at = next(place for place in range(at + 1, len(messages)) if messages[place]["role"] != "assistant")
            layout.append({"at": at, "part": difference(_own_part(messages[at]), part)})
        elif kind == "text" and text_place is not None:
            layout.append({"at": text_place, "text": difference(_text_part(messages[text_place]), part)})
        else:
            layout.append({"whole": part})
    return layout


def _place_of_only_text(messages: list[Message], parts: list[Row]) -> int | None:
    texts = [part.get("content") for part in parts if part["part_kind"] == "text"]
    if len(texts) != 1 or not isinstance(texts[0], str):
        return None
    return next(
        at for at, message in enumerate(messages) if message["role"] == "assistant" and message["content"] == texts[0]
    )


def _next_with_calls(messages: list[Message], at: int, calls: list[Row]) -> tuple[int, list[Row]]:
    """Return where the next call stands, and the calls from it on."""
    if calls:
        return at, calls
    place = next(
        place for place in range(max(at, 0), len(messages)) if messages[place].get("tool_calls") and place != at
    )
    return place, list(cast("list[Row]", messages[place]["tool_calls"]))


def _write_parts(messages: list[Message], kind: str) -> list[Row]:
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
            if (media := split_data_url(url)) is not None:
                kind, data = media
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
    entries: list[Row] = []
    instructions: str | None = None
    at = 0
    names = {call.get("id"): name_of(call) for message in messages for call in message.get("tool_calls") or ()}
    while at < len(messages):
        extra = taken_back(messages[at], NAME)
        group = messages[at : at + (extra["of"] if "of" in extra else _length(messages, at))]
        for number, message in enumerate(group, at):
            _tell(message, number, loss)
        kind = extra.get("kind") or ("response" if group[0]["role"] == "assistant" else "request")
        fields: Row = dict(extra.get("fields") or {})
        if extra.get("instructions"):
            instructions, group = cast("str", group[0]["content"]), group[1:]
            fields["instructions"] = instructions
        elif fields.get("instructions"):
            fields["instructions"] = instructions
        with_names = [_with_name(message, names) for message in group]
        parts = _restore_parts(with_names, extra["layout"]) if "layout" in extra else _write_parts(with_names, kind)
        if "kind" not in extra and kind == "response" and with_names[0].get("timestamp") is not None:
            fields["timestamp"] = with_names[0]["timestamp"]
        entries.append({"kind": kind, "parts": parts, **fields})
        at += max(1, len(group) + bool(extra.get("instructions")))
    return {"messages": entries}


def _with_name(message: Message, names: Mapping[Any, str]) -> Message:
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
        loss.add_dropped("'retrieval_context' of a message", index)
    if message.get("name") is not None and message["role"] != "tool":
        loss.add_dropped("'name' of a message", index)


def _restore_parts(group: list[Message], layout: list[Row]) -> list[Row]:
    parts: list[Row] = []
    left = [list(cast("list[Row]", message.get("tool_calls") or [])) for message in group]
    for entry in layout:
        at = cast("int", entry.get("at", 0))
        if "whole" in entry:
            parts.append(entry["whole"])
        elif at >= len(group):
            continue
        elif "part" in entry:
            parts.append(restore(_own_part(group[at]), entry["part"]))
        elif "text" in entry:
            parts.append(restore(_text_part(group[at]), entry["text"]))
        elif left[at]:
            parts.append(restore(_call_part(left[at].pop(0), raw=bool(entry.get("raw"))), entry["call"]))
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
