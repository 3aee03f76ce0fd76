"""The UI messages of Vercel's AI SDK: a call and its result are one part, and an answer of several steps one message.

A step becomes a message of ours with its calls, and the results behind it. What is not text, a file or a call
(reasoning, sources, data) is kept in the metadata.
Source: `ui-messages.ts` of the package `ai`, versions 4 (`tool-invocation`) to 6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.comparing.call_outcomes import CallOutcome
from vivavoce.comparing.json_values import BrokenJson, parse
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
    state_outcome,
    taken_back,
    tool_call,
)

NAME = "vercel"
_ROLES = ("system", "user", "assistant")
_OWN = frozenset(("step-start", "dynamic-tool", "tool-invocation", "source-url", "source-document"))
_STEP: Row = {"type": "step-start"}


def _parts(item: Any) -> list[Row] | None:
    """Return the parts of a message, None if it is not one."""
    if not isinstance(item, Mapping):
        return None
    fields = cast("Row", item)
    parts = fields.get("parts")
    if fields.get("role") not in _ROLES or not isinstance(parts, list):
        return None
    entries = cast("list[Any]", parts)
    if all(isinstance(part, dict) and isinstance(cast("Row", part).get("type"), str) for part in entries):
        return cast("list[Row]", entries)
    return None


def _is_certain(item: Any) -> bool:
    return any(
        part["type"] in _OWN
        or part["type"].startswith(("tool-", "data-"))
        or (part["type"] in ("text", "reasoning") and isinstance(part.get("text"), str))
        for part in _parts(item) or ()
    )


@dataclass(frozen=True, slots=True)
class _Tool:
    """A call, and its result if there is one."""

    call: Row
    result: object = None
    is_answered: bool = False
    outcome: CallOutcome | None = None


@dataclass(slots=True)
class _Step:
    """What is said and called before results come."""

    parts: list[Row] = field(default_factory=list[Row])
    texts: list[str] = field(default_factory=list[str])
    tools: list[_Tool] = field(default_factory=list[_Tool])


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    messages: list[Message] = []
    for index, item in enumerate(items):
        parts = _parts(item)
        if parts is None:
            raise Unreadable(f"message {index}: needs a role (system, user or assistant) and parts with a type")
        fields = cast("Row", item)
        read = (
            _answer(parts, index, loss)
            if fields["role"] == "assistant"
            else [_user_message(fields["role"], parts, index, loss)]
        )
        extra = {key: value for key, value in fields.items() if key not in ("role", "parts")}
        if fields.get("metadata"):
            loss.aside("metadata", index)
        set_aside(read[0], NAME, {**({"fields": extra} if extra else {}), "begins": True})
        messages += read
    return messages


def _answer(parts: list[Row], index: int, loss: Loss) -> list[Message]:
    steps = [_Step()]
    for part in parts:
        tool = _tool(part)
        if tool is None and steps[-1].tools:
            steps.append(_Step())
        step = steps[-1]
        step.parts.append(part)
        if tool is not None:
            step.tools.append(tool)
        elif part["type"] == "text" and isinstance(part.get("text"), str):
            step.texts.append(part["text"])
        elif part["type"] != "step-start":
            loss.aside("data" if part["type"].startswith("data-") else part["type"], index)
    return [message for step in steps for message in _messages(step)]


def _messages(step: _Step) -> list[Message]:
    message: Message = {"role": "assistant", "content": join_text_parts(step.texts) if step.texts else None}
    if step.tools:
        message["tool_calls"] = [tool.call for tool in step.tools]
    results: list[Message] = []
    for tool in step.tools:
        if tool.is_answered:
            text = tool.result if isinstance(tool.result, str) else json.dumps(tool.result, ensure_ascii=False)
            results.append({"role": "tool", "content": text, "tool_call_id": tool.call.get("id")})
            state_outcome(results[-1], tool.outcome)
    parts_of_ours = _step_parts(message, results, {})
    if parts_of_ours != step.parts:
        set_aside(message, NAME, {"parts": _layout(step, message, results)})
    return [message, *results]


def _layout(step: _Step, message: Message, results: list[Message]) -> list[Row]:
    """Return what each part of a step is made of: the text or a call of our message, or else the part itself."""
    calls = iter(step.tools)
    layout: list[Row] = []
    for part in step.parts:
        if _tool(part) is not None:
            tool = next(calls)
            as_json = tool.is_answered and not isinstance(tool.result, str)
            part_of_ours = _tool_part(tool.call, _result_of(tool.call, results), as_json=as_json)
            layout.append({"call": difference(part_of_ours, part), **({"json": True} if as_json else {})})
        elif part["type"] == "text" and len(step.texts) == 1 and part.get("text") == message["content"]:
            layout.append({"text": difference({"type": "text", "text": message["content"]}, part)})
        else:
            layout.append({"part": part})
    return layout


def _tool(part: Row) -> _Tool | None:
    """Return the call that a part shows, None if it shows none."""
    type_ = cast("str", part["type"])
    if type_ == "tool-invocation" and isinstance(invocation := part.get("toolInvocation"), dict):
        old = cast("Row", invocation)
        call = tool_call(_text(old.get("toolCallId")), str(old.get("toolName")), old.get("args"))
        return _Tool(call, old.get("result"), old.get("state") == "result")
    if type_ != "dynamic-tool" and not type_.startswith("tool-"):
        return None
    name = str(part.get("toolName")) if type_ == "dynamic-tool" else type_.removeprefix("tool-")
    inputs = part.get("input") if part.get("input") is not None else part.get("rawInput")
    call = tool_call(_text(part.get("toolCallId")), name, inputs)
    match part.get("state"):
        case "output-available":
            return _Tool(call, part.get("output"), is_answered=True)
        case "output-error":
            return _Tool(call, str(part.get("errorText")), is_answered=True, outcome="failed")
        case "output-denied":
            return _refused_call(call, part)
        case "approval-responded" if _approval(part).get("approved") is False:
            return _refused_call(call, part)
        case _:
            return _Tool(call)


def _refused_call(call: Row, part: Row) -> _Tool:
    """Return a call that the user refused, with the reason as the result."""
    reason = _approval(part).get("reason")
    return _Tool(call, reason if isinstance(reason, str) and reason else "denied", is_answered=True, outcome="refused")


def _approval(part: Row) -> Row:
    approval: Any = part.get("approval")
    return cast("Row", approval) if isinstance(approval, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _user_message(role: str, parts: list[Row], index: int, loss: Loss) -> Message:
    read: list[Row] = []
    for part in parts:
        ours = _part(part)
        if ours is not None:
            read.append(ours)
        else:
            loss.aside("data" if part["type"].startswith("data-") else part["type"], index)
    is_text = len(read) == 1 and read[0]["type"] == "text"
    message: Message = {"role": role, "content": read[0]["text"] if is_text else read}
    if _said_parts(message) != parts:
        set_aside(message, NAME, {"parts": [{"part": part} for part in parts]})
    return message


def _part(part: Row) -> Row | None:
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "file", "mediaType": str(kind), "url": str(url)} if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}, "mediaType": kind}
        case {"type": "file", "url": str(url)} if url.startswith("data:"):
            name = part.get("filename")
            return {"type": "file", "file": {"file_data": url, **({"filename": name} if isinstance(name, str) else {})}}
        case _:
            return None


def _write(messages: list[Message], loss: Loss) -> Row:
    entries: list[Row] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        extra = taken_back(message, NAME)
        _tell(message, at, loss)
        fields: Row = {"id": f"message-{len(entries)}", **cast("Row", extra.get("fields") or {})}
        if extra.get("begins") and "id" not in (extra.get("fields") or {}):
            del fields["id"]
        end = at + 1
        while end < len(messages) and messages[end]["role"] == "tool":
            end += 1
        parts = _written_parts(message, messages[at + 1 : end], extra)
        continues = (
            message["role"] == "assistant" and entries and entries[-1]["role"] == "assistant" and "begins" not in extra
        )
        if continues:
            entries[-1]["parts"] += parts
        elif message["role"] == "tool":
            loss.add_dropped("a result without a call before it", at)
        else:
            role = "system" if message["role"] == "developer" else message["role"]
            entries.append({**fields, "role": role, "parts": parts})
        at = end
    return {"messages": entries}


def _tell(message: Message, index: int, loss: Loss) -> None:
    loss.left_out(message, ("name", "timestamp", "retrieval_context"), index)


def _written_parts(message: Message, results: list[Message], extra: Row) -> list[Row]:
    if message["role"] == "assistant":
        return _step_parts(message, results, extra)
    layout = cast("list[Row] | None", extra.get("parts"))
    return [entry["part"] for entry in layout] if layout is not None else _said_parts(message)


def _step_parts(message: Message, results: list[Message], extra: Row) -> list[Row]:
    calls = cast("list[Row]", message.get("tool_calls") or [])
    content: Any = message.get("content")
    if "parts" not in extra:
        return [_STEP, *_said_parts(message), *(_tool_part(call, _result_of(call, results)) for call in calls)]
    parts: list[Row] = []
    left = iter(calls)
    for entry in cast("list[Row]", extra["parts"]):
        if "part" in entry:
            parts.append(entry["part"])
        elif "text" in entry:
            parts.append(restore({"type": "text", "text": content}, entry["text"]))
        elif (call := next(left, None)) is not None:
            result = _result_of(call, results)
            parts.append(restore(_tool_part(call, result, as_json=bool(entry.get("json"))), entry["call"]))
    return parts


def _result_of(call: Row, results: list[Message]) -> Message | None:
    return next((result for result in results if result.get("tool_call_id") == call.get("id")), None)


def _tool_part(call: Row, result: Message | None, *, as_json: bool = False) -> Row:
    part = {"type": f"tool-{name_of(call)}", "toolCallId": call.get("id"), "input": arguments_of(call)}
    if result is None:
        return {**part, "state": "input-available"}
    content: Any = result.get("content")
    match result.get("outcome"):
        case "failed":
            return {**part, "state": "output-error", "errorText": content}
        case "refused":
            return {**part, "state": "output-denied", "approval": {"approved": False, "reason": content}}
        case _:
            return {**part, "state": "output-available", "output": _parse_text(content) if as_json else content}


def _parse_text(content: Any) -> Any:
    """Return the value of a text that was JSON; one that was changed since may not be JSON."""
    try:
        return parse(content) if isinstance(content, str) else content
    except BrokenJson:
        return content


def _said_parts(message: Message) -> list[Row]:
    content: Any = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [file for part in cast("list[Row]", content or []) if (file := _file(part)) is not None]


def _file(part: Row) -> Row | None:
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            kind = part.get("mediaType") or (
                url[len("data:") :].split(";")[0] if url.startswith("data:") else "image/*"
            )
            return {"type": "file", "mediaType": kind, "url": url}
        case {"type": "file", "file": {"file_data": str(url), **more}}:
            name = {"filename": more["filename"]} if more.get("filename") else {}
            return {"type": "file", "mediaType": _media_type(url, "application/octet-stream"), "url": url, **name}
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case _:
            return None


def _media_type(url: str, otherwise: str) -> str:
    return url[len("data:") :].split(";")[0] if url.startswith("data:") else otherwise


FORMAT = Messages(
    NAME,
    "Vercel AI SDK UI messages",
    ("messages", "uiMessages"),
    _is_certain,
    lambda item: _parts(item) is not None,
    _read,
    _write,
    keeps_outcomes=True,
).format()
