"""LangChain's messages: as `messages_to_dict` writes them, as `dumpd` does, and flat, as `model_dump` does.

The three spellings have the same fields, whose meaning is in `langchain_messages`. Blocks of a provider that repeat the
calls (`tool_use`) are set aside. Messages are written as they were read, those of others as `messages_to_dict` does.
Source: the message classes of langchain-core, and what its `messages_to_dict`, `dumpd` and `model_dump` return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeGuard, cast

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    arguments_of,
    did_fail,
    difference,
    name_of,
    restore,
    set_aside,
    state_outcome,
    taken_back,
    tool_call,
)
from vivavoce.langchain_messages import LANGCHAIN, ROLES, calls_of, content_of

_TYPES = {"user": "human", "assistant": "ai", "system": "system", "developer": "system", "tool": "tool"}
_CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
_NAMES = {  # of classes that `dumpd` names without their type
    **{class_name: type_ for type_, class_name in _CLASSES.items()},
    "ChatMessage": "chat",
    "FunctionMessage": "function",
    "RemoveMessage": "remove",
}
_OTHERS = frozenset(("chat", "ChatMessageChunk", "remove"))
_CHAT_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system"}
_OWN = frozenset(("additional_kwargs", "response_metadata", "invalid_tool_calls"))
_TOLD_ASIDE = ("usage_metadata", "response_metadata", "additional_kwargs", "artifact")
_KNOWN_KEYS = frozenset(
    (
        *("type", "content", "name", "id", "role", "example", "tool_calls", "tool_call_id", "tool_call_chunks"),
        *("chunk_position", "invalid_tool_calls", "status", *_TOLD_ASIDE),
    )
)


class _PlainMessage(NamedTuple):
    """A message without its wrapping."""

    spelling: Literal["data", "dumpd", "flat"]
    type: str
    fields: Row


def _unwrap(item: Any) -> _PlainMessage | None:
    """Return a message without its wrapping; None if it is not a message."""
    if not isinstance(item, Mapping):
        return None
    fields = cast("Row", item)
    if (
        fields.get("lc") == 1
        and isinstance(kwargs := fields.get("kwargs"), dict)
        and isinstance(fields.get("id"), list)
    ):
        path = cast("list[Any]", fields["id"])
        type_name = cast("Row", kwargs).get("type") or _NAMES.get(str(path[-1]) if path else "")
        return _PlainMessage("dumpd", type_name, cast("Row", kwargs)) if _is_type(type_name) else None
    type_ = fields.get("type")
    if not _is_type(type_):
        return None
    if isinstance(data := fields.get("data"), dict):
        return _PlainMessage("data", type_, cast("Row", data))
    is_flat = type_ in _OTHERS or ("content" in fields and "role" not in fields)
    return _PlainMessage("flat", type_, fields) if is_flat else None


def _is_type(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and (value in ROLES or value in _OTHERS)


def _is_certain(item: Any) -> bool:
    plain = _unwrap(item)
    return plain is not None and (plain.spelling != "flat" or not _OWN.isdisjoint(plain.fields))


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    messages: list[Message] = []
    for index, item in enumerate(items):
        plain = _unwrap(item)
        if plain is None:
            raise Unreadable(f"message {index}: needs content and a type: {', '.join(_CLASSES)}")
        if plain.type == "remove":
            loss.add_dropped("remove: deletion of a message", index)
            continue
        message = _message(plain, index, loss)
        extra = difference(_fields(message, plain.spelling), plain.fields)
        if plain.spelling != "data":
            extra["spelling"] = plain.spelling
        if plain.spelling == "dumpd" and item["id"] != _class_path(_TYPES[message["role"]]):
            extra["class"] = item["id"]
        if plain.spelling == "data" and item["type"] != _TYPES[message["role"]]:
            extra["type"] = item["type"]
        set_aside(message, LANGCHAIN, extra)
        messages.append(message)
    return messages


def _message(plain: _PlainMessage, index: int, loss: Loss) -> Message:
    fields = plain.fields
    role, name = ROLES.get(plain.type), fields.get("name")
    if role is None:
        chat_role = fields.get("role")
        role, name = _role_of_chat(chat_role, index, loss), name or chat_role
    for key in fields:
        if key not in _KNOWN_KEYS:
            loss.unknown(key, index)
        elif key in _TOLD_ASIDE and fields[key]:
            loss.aside(key, index)
    message: Message = {"role": role, "content": _content(fields.get("content"), role, index, loss)}
    if isinstance(name, str):
        message["name"] = name
    if role == "assistant":
        if calls := _calls(fields, index, loss):
            message["tool_calls"] = calls
            message["content"] = message["content"] or None
    elif role == "tool":
        called = fields.get("tool_call_id")
        message["tool_call_id"] = called if isinstance(called, str) else None
        state_outcome(message, failed_if(fields.get("status") == "error"))  # `success` is written whatever came back
    return message


def _role_of_chat(chat_role: Any, index: int, loss: Loss) -> str:
    if isinstance(chat_role, str) and chat_role in _CHAT_ROLES:
        return _CHAT_ROLES[chat_role]
    loss.add_guess(f"that '{chat_role}' is the assistant", index)
    return "assistant"


def _calls(fields: Row, index: int, loss: Loss) -> list[Row]:
    calls = calls_of(fields)
    calls_with_name = [call for call in calls if isinstance(call.get("name"), str)]
    if len(calls_with_name) < len(calls):
        loss.add_dropped("a call without a name", index, len(calls) - len(calls_with_name))
    return [tool_call(_text_or_none(call.get("id")), call["name"], call["args"]) for call in calls_with_name]


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _content(content: Any, role: str, index: int, loss: Loss) -> Any:
    if isinstance(content, str) or content is None:
        return content
    if not isinstance(content, list):
        raise Unreadable(f"message {index}: the content is {type(content).__name__}, not text or a list of blocks")
    parts, unread = content_of(cast("list[Any]", content), role)
    for block in unread:
        loss.aside(f"block {cast('Row', block).get('type')}" if isinstance(block, dict) else "block", index)
    return parts or ""


def _fields(message: Message, spelling: str) -> Row:
    """Return the fields of a message, with the defaults that LangChain writes in this spelling."""
    role = message["role"]
    content: object = message.get("content")
    fields: Row = {"content": "" if content is None else content, "type": _TYPES[role]}
    if spelling != "dumpd":
        fields.update(additional_kwargs={}, response_metadata={}, name=None, id=None)
    if message.get("name") is not None:
        fields["name"] = message["name"]
    if role == "assistant":
        calls = [_written_call(call) for call in message.get("tool_calls") or ()]
        fields["tool_calls"] = [call for call in calls if isinstance(call["args"], dict)]
        fields["invalid_tool_calls"] = [
            {**call, "error": None, "type": "invalid_tool_call"} for call in calls if not isinstance(call["args"], dict)
        ]
        if spelling != "dumpd":
            fields["usage_metadata"] = None
    elif role == "tool":
        status = "error" if did_fail(message) else "success"
        fields.update(tool_call_id=message.get("tool_call_id"), status=status)
        if spelling != "dumpd":
            fields["artifact"] = None
    return fields


def _written_call(call: Row) -> Row:
    """Return a call with its arguments as an object, or as the text that they are."""
    arguments = arguments_of(call)
    args: Any = cast("Any", arguments) if isinstance(arguments, dict) else call["function"]["arguments"]
    return {"name": name_of(call), "args": args, "id": call.get("id"), "type": "tool_call"}


def _class_path(type_: str) -> list[str]:
    return ["langchain", "schema", "messages", _CLASSES.get(type_, type_)]


def _write(messages: list[Message], loss: Loss) -> Row:
    return {"messages": [_write_message(message, index, loss) for index, message in enumerate(messages)]}


def _write_message(message: Message, index: int, loss: Loss) -> Row:
    extra = taken_back(message, LANGCHAIN)
    spelling = extra.get("spelling", "data")
    loss.left_out(message, ("timestamp", "retrieval_context"), index)
    fields = restore(_fields(message, spelling), extra)
    type_ = extra.get("type", _TYPES[message["role"]])
    match spelling:
        case "flat":
            return fields
        case "dumpd":
            path = extra.get("class") or _class_path(type_)
            return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}
        case _:
            return {"type": type_, "data": fields}


FORMAT = Messages(
    name=LANGCHAIN,
    title="LangChain messages",
    keys=("messages",),
    is_certain=_is_certain,
    is_message=lambda item: _unwrap(item) is not None,
    read=_read,
    write=_write,
    keeps_outcomes=True,
).format()
