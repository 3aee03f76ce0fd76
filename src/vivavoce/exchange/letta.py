"""Letta: messages as its API returns them, told apart by `message_type`, and the messages of exported agents (`.af`).

What the API lists as several messages of one step (reasoning, a call, words) becomes one; a list that begins with the
latest is turned around. Source: the types of the package letta-client 1.12, and the schema of agent files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from vivavoce.exchange.calls import tool_call
from vivavoce.exchange.conversations import Between, Items, Message, Messages, Unreadable, set_aside, text_of
from vivavoce.exchange.format import Row
from vivavoce.exchange.loss import NO_MESSAGES, Loss
from vivavoce.exchange.shapes import fields_in, filled, objects_in, text_in, time_in, without

NAME = "letta"
_SAID = {"user_message": "user", "system_message": "system", "assistant_message": "assistant"}
_CALLS = ("tool_call_message", "approval_request_message")
_KINDS = (
    *_SAID,
    *_CALLS,
    *("tool_return_message", "reasoning_message", "hidden_reasoning_message", "approval_response_message"),
    *("summary_message", "event_message", "internal_message"),
)
_OF_MESSAGE = frozenset(
    (
        *("id", "date", "message_type", "content", "name", "tool_call", "tool_calls", "tool_return", "tool_returns"),
        *("tool_call_id", "role", "type", "created_at"),
    )
)
_OF_AGENT = ("id", "name", "description", "agent_type")
_ROLES = ("user", "system", "assistant", "tool", "approval")


def _is_certain(item: Any) -> bool:
    fields = fields_in(item)
    return fields.get("message_type") in _KINDS or (_is_stored(fields) and "agent_id" in fields)


def _is_message(item: Any) -> bool:
    fields = fields_in(item)
    return isinstance(fields.get("message_type"), str) or _is_stored(fields)


def _is_stored(fields: Mapping[str, Any]) -> bool:
    """Whether it is a message of an exported agent."""
    return (
        fields.get("role") in _ROLES and isinstance(fields.get("content"), list | None) and "message_type" not in fields
    )


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    found = objects_in(items)
    if "agent_type" in beside:
        agent = {key: value for key, value in beside.items() if key in _OF_AGENT}
        if len(agent) < len(beside):
            loss.dropped("settings and memory of an agent")
        beside.clear()
        beside |= agent
    times = [time for item in found if isinstance(time := item.get("date"), str)]
    if times and times[0] > times[-1]:
        found.reverse()
    messages: list[Message] = []
    between = Between(NAME)
    for item in found:
        first = len(messages)
        _add(item, messages, between, loss)
        if len(messages) > first:
            between.give_to(messages[first])
    between.end(messages)
    if not messages:
        raise Unreadable(NO_MESSAGES)
    return messages


def _add(item: Row, messages: list[Message], between: Between, loss: Loss) -> None:
    kind, index = text_in(item.get("message_type")), len(messages)
    if kind in _SAID:
        _say(_SAID[kind], item, messages, loss)
    elif kind in _CALLS:
        calls = objects_in(item.get("tool_calls")) or [fields_in(item.get("tool_call"))]
        message = _same_step(item, messages) or _started("assistant", item, messages)
        message["tool_calls"] = [*message.get("tool_calls", ()), *map(_call, calls)]
    elif kind == "tool_return_message" or (kind == "approval_response_message" and _returns(item)):
        messages += [_result(result, item, loss) for result in _returns(item) or [item]]
    elif kind is None and _is_stored(item):
        _add_stored(item, messages, between, loss)
    else:
        loss.aside(kind or "something that is not a message", index)
        between.add(item)


def _say(role: str, item: Row, messages: list[Message], loss: Loss) -> None:
    content = _content(item.get("content"), len(messages), loss)
    same = _same_step(item, messages) if role == "assistant" else None
    if same is not None and same["content"] is None:
        same["content"] = content
    else:
        _started(role, item, messages)["content"] = content


def _same_step(item: Row, messages: list[Message]) -> Message | None:
    """Return the last message, if it is of the assistant and the API only lists its parts apart."""
    last = messages[-1] if messages else {}
    kept = fields_in(fields_in(last.get("metadata")).get(NAME))
    same = last.get("role") == "assistant" and item.get("id") is not None and kept.get("id") == item.get("id")
    return last if same else None


def _started(role: str, item: Row, messages: list[Message]) -> Message:
    message: Message = {"role": role, "content": None}
    if name := text_in(item.get("name")):
        message["name"] = name
    if (time := time_in(item.get("date") or item.get("created_at"))) is not None:
        message["timestamp"] = time
    set_aside(message, NAME, {**without(item, _OF_MESSAGE), **filled({"id": item.get("id")})})
    messages.append(message)
    return message


def _call(call: Row) -> Row:
    function = fields_in(call.get("function")) or call
    return tool_call(_id(call, "tool_call_id", "id"), text_in(function.get("name")) or "", function.get("arguments"))


def _id(fields: Row, *keys: str) -> str | None:
    return next((found for key in keys if (found := text_in(fields.get(key))) is not None), None)


def _returns(item: Row) -> list[Row]:
    """Return the results of several calls; the answers to requests for approval stand among them."""
    both = objects_in(item.get("tool_returns")) or objects_in(item.get("approvals"))
    return [result for result in both if "tool_return" in result]


def _result(result: Row, item: Row, loss: Loss) -> Message:
    message = _started("tool", item, [])
    message["content"] = _content(result.get("tool_return"), None, loss)
    message["tool_call_id"] = text_in(result.get("tool_call_id"))
    others = without(result, ("tool_return", "tool_call_id", "type")) if result is not item else {}
    kept = {key: value for key, value in others.items() if value not in ("success", [])}
    set_aside(message, NAME, kept)
    return message


def _content(said: Any, index: int | None, loss: Loss) -> Any:
    if not isinstance(said, list):
        return said if isinstance(said, str) else None
    parts = [_part(part, index, loss) for part in objects_in(cast("list[Any]", said))]
    found = [part for part in parts if part is not None]
    return text_of(found) if all(part["type"] == "text" for part in found) else found


def _part(part: Row, index: int | None, loss: Loss) -> Row | None:
    source = fields_in(part.get("source"))
    match part.get("type"):
        case "text" if isinstance(part.get("text"), str):
            return {"type": "text", "text": part["text"]}
        case "image" if isinstance(source.get("data"), str):
            url = f"data:{source.get('media_type') or 'image/png'};base64,{source['data']}"
            return {"type": "image_url", "image_url": {"url": url}}
        case "image" if isinstance(source.get("url"), str):
            return {"type": "image_url", "image_url": {"url": source["url"]}}
        case kind:
            loss.dropped(f"a part of the type {kind!r}"[:80], index)
            return None


def _add_stored(item: Row, messages: list[Message], between: Between, loss: Loss) -> None:
    """Add a message of an exported agent, whose words, thoughts, calls and results are parts of its content."""
    parts, role = objects_in(item.get("content")), item.get("role")
    by_kind: dict[Any, list[Row]] = {}
    for part in parts:
        by_kind.setdefault(str(part.get("type")), []).append(part)
    results = by_kind.pop("tool_return", [])
    calls = [*by_kind.pop("tool_call", []), *objects_in(item.get("tool_calls"))]
    for kind in ("reasoning", "redacted_reasoning", "omitted_reasoning", "summarized_reasoning"):
        for thought in by_kind.pop(kind, []):
            loss.aside(kind, len(messages))
            between.add(thought)
    if role == "approval":
        loss.aside("an answer to a request for approval", len(messages))
        between.add(item)
        return
    if role == "tool":
        stored = [{**result, "tool_return": result.get("content")} for result in results]
        told = objects_in(item.get("tool_returns"))
        given = [{**one, "tool_return": one.get("tool_return", one.get("func_response"))} for one in told]
        whole = [{"tool_return": item.get("content"), "tool_call_id": item.get("tool_call_id")}]
        messages += [_result(result, item, loss) for result in stored or (given if len(given) > 1 else whole)]
        return
    message = _started(cast("str", role), item, messages)
    said = _content([part for part in parts if str(part.get("type")) in by_kind], len(messages) - 1, loss)
    message["content"] = said or (None if calls else "")
    if calls:
        message["tool_calls"] = list(map(_call, calls))


FORMAT = replace(
    Messages(NAME, "Letta messages", ("messages",), _is_certain, _is_message, _read).format(), lists=(("agents",),)
)
