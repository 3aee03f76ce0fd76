"""Gemini's contents, in the spelling of the API (`functionCall`) and in that of Python (`function_call`).

Calls and results often have no ids: a result then answers the first open call of its name. Thoughts, and what the model
ran by itself, are kept in the metadata.
Source: the reference of Gemini's API, and the types of google-genai.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.comparing.json_values import BrokenJson, parse
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
    split_data_url,
    state_outcome,
    taken_back,
    text_of,
    tool_call,
)

NAME = "gemini"
MADE_UP = "gemini-call-"
"""What the ids begin with that we give to calls without one; they are not written."""

_ROLES = {"user": "user", "function": "user", "tool": "user", "model": "assistant"}
_CAMEL = ("functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult")
_SNAKE = ("function_call", "function_response", "inline_data", "file_data", "executable_code", "code_execution_result")
_MEDIA = ("inlineData", "fileData")
_HOLDS = ("text", *_CAMEL, *_SNAKE)
_TO_STANDARD = str.maketrans("-_", "+/")
"""Python's package writes base64 with the letters of addresses, which `data:` URLs do not have."""
_WRAPS = ("result", "output")
_ERROR = "error"
"""The key of a response that holds the details of an error."""
_SYSTEM = ("systemInstruction", "system_instruction")


def parts_of(item: Any) -> list[Row] | None:
    """Return the parts of a content; None if it is not one."""
    if not isinstance(item, Mapping):
        return None
    fields = cast("Row", item)
    parts, role = fields.get("parts"), fields.get("role")
    if (
        not isinstance(parts, list)
        or not (role is None or role in tuple(_ROLES))
        or "messageId" in fields
        or "kind" in fields
    ):
        return None
    entries = cast("list[Any]", parts)
    return cast("list[Row]", entries) if all(map(_is_part, entries)) else None


def _is_part(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    part = cast("Row", value)
    return "type" not in part and "kind" not in part and isinstance(part.get("text", ""), str | None)


def _is_certain(item: Any) -> bool:
    return any(part.get(key) is not None for part in parts_of(item) or () for key in _HOLDS)


def either(fields: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key in the spelling of the API, or else in that of Python."""
    value = fields.get(name)
    return fields.get(_to_snake(name)) if value is None else value


def object_in(part: Row, name: str) -> Row | None:
    """Return an object of a part, in either spelling."""
    value = either(part, name)
    return cast("Row", value) if isinstance(value, dict) else None


class Pairing:
    """Gives ids to calls that have none, and finds the calls that results without an id answer."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self._number = 0
        self._open: dict[str, list[str]] = {}

    def call(self, stated: Any, name: str) -> str:
        """Return the id of a call."""
        identity = stated if isinstance(stated, str) and stated else f"{MADE_UP}{self._number}"
        self._number += 1
        self._open.setdefault(name, []).append(identity)
        return identity

    def answer(self, stated: Any, name: str, index: int) -> str | None:
        """Return the id of the call that a result answers, None if there is none."""
        waiting = self._open.get(name, [])
        if isinstance(stated, str) and stated:
            if stated in waiting:
                waiting.remove(stated)
            return stated
        if len(waiting) > 1 and any(identity.startswith(MADE_UP) for identity in waiting):
            self._loss.add_guess("which of several same-name calls a result answers", index)
        return waiting.pop(0) if waiting else None


def read_content(item: Any, index: int, pairing: Pairing, loss: Loss) -> list[Message]:
    """Return the messages of a content: the results in it, and what was said; what ours cannot hold is set aside.

    Raises:
        Unreadable: it is not a content.
    """
    parts = parts_of(item)
    if parts is None:
        raise Unreadable(f"content {index}: needs a role (user or model) and parts without a type")
    read = _messages(cast("Row", item), parts, index, pairing, loss)
    extra = _extra_of(cast("Row", item), read)
    set_aside(read[0], NAME, {**extra, **({"of": len(read)} if read[0]["role"] == "tool" else {})})
    return read


def _messages(item: Row, parts: list[Row], index: int, pairing: Pairing, loss: Loss) -> list[Message]:
    role = _ROLES.get(item.get("role") or "user", "user")
    messages: list[Message] = []
    contents: list[Row] = []
    for part in parts:
        called, response = object_in(part, "functionCall"), object_in(part, "functionResponse")
        if response is not None:
            messages.append(_result(response, index, pairing))
        elif called is not None and role == "assistant":
            contents.append({"call": called})
        elif (read := _part(part)) is not None:
            contents.append(read)
        else:
            loss.aside(_kind(part), index)
    if role == "assistant":
        calls = [_call(part["call"], pairing) for part in contents if "call" in part]
        texts = [part for part in contents if part.get("type") == "text"]
        for part in contents:
            if part.get("type", "text") != "text":
                loss.aside("a part of the model that is not text", index)
        message: Message = {"role": role, "content": text_of(texts) if texts else None}
        messages.append({**message, **({"tool_calls": calls} if calls else {})})
    elif contents or not messages:
        only = contents[0] if len(contents) == 1 and contents[0].keys() == {"type", "text"} else None
        messages.append({"role": role, "content": contents if only is None else only["text"]})
    return messages


def _kind(part: Row) -> str:
    if part.get("thought"):
        return "thought"
    return next((key for key in _HOLDS if part.get(key) is not None), "an empty part")


def _call(called: Row, pairing: Pairing) -> Row:
    name = str(called.get("name"))
    return tool_call(pairing.call(called.get("id"), name), name, called.get("args"))


def _result(answer: Row, index: int, pairing: Pairing) -> Message:
    name = str(answer.get("name"))
    response: Any = answer.get("response")
    if isinstance(response, dict) and len(wrapped := cast("Row", response)) == 1:
        response = next((wrapped[key] for key in _WRAPS if isinstance(wrapped.get(key), str)), cast("Any", wrapped))
    content = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    called = pairing.answer(answer.get("id"), name, index)
    message: Message = {"role": "tool", "content": content, "name": name, "tool_call_id": called}
    state_outcome(message, failed_if(isinstance(response, dict) and cast("Row", response).get(_ERROR)))
    return message


def _part(part: Row) -> Row | None:
    """Return a part as ours, None if ours has no such part."""
    if isinstance(text := part.get("text"), str):
        return None if part.get("thought") else {"type": "text", "text": text}
    inline, file = object_in(part, "inlineData"), object_in(part, "fileData")
    if inline is not None and isinstance(data := inline.get("data"), str):
        kind = str(inline.get("mimeType") or inline.get("mime_type"))
        url = f"data:{kind};base64,{data.translate(_TO_STANDARD)}"
        return _image(url) if kind.startswith("image/") else {"type": "file", "file": {"file_data": url}}
    if file is not None and isinstance(url := file.get("fileUri") or file.get("file_uri"), str):
        kind = str(file.get("mimeType") or file.get("mime_type"))
        return {**_image(url), "mimeType": kind} if kind.startswith("image/") else None
    return None


def _image(url: str) -> Row:
    return {"type": "image_url", "image_url": {"url": url}}


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    messages = [_instruction(key, instruction) for key in _SYSTEM if (instruction := beside.pop(key, None)) is not None]
    pairing = Pairing(loss)
    for index, item in enumerate(items):
        messages += read_content(item, index, pairing, loss)
    return messages


def _instruction(key: str, instruction: Any) -> Message:
    text = (
        instruction
        if isinstance(instruction, str)
        else text_of(cast("Row", instruction).get("parts") if isinstance(instruction, dict) else instruction)
    )
    message: Message = {"role": "system", "content": text}
    set_aside(message, NAME, {"system": key})
    if instruction != _instruction_of(text):
        set_aside(message, NAME, {"told": instruction})
    return message


def _instruction_of(text: str) -> Row:
    return {"parts": [{"text": text}]}


def _extra_of(content: Row, read: list[Message]) -> Row:
    """Return what the writer must know in addition to our messages to write a content as it was."""
    parts = cast("list[Row]", content["parts"])
    snake = any(part.get(key) is not None for part in parts for key in _SNAKE)
    spelling = {"snake": True} if snake else {}
    content_of_ours = _content(read, snake=snake)
    if content_of_ours["parts"] == parts:
        return {**spelling, **difference(content_of_ours, content)}
    results = iter([message for message in read if message["role"] == "tool"])
    calls = iter(cast("list[Row]", read[-1].get("tool_calls") or []))
    texts = [part for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
    layout: list[Row] = []
    for part in parts:
        if object_in(part, "functionResponse") is not None:
            layout.append({"result": difference(_spell(_response(next(results)), snake), part)})
        elif object_in(part, "functionCall") is not None and read[-1]["role"] == "assistant":
            layout.append({"call": difference(_spell(_write_call(next(calls)), snake), part)})
        elif texts == [part] and isinstance(read[-1]["content"], str) and read[-1]["role"] != "tool":
            layout.append({"text": difference({"text": read[-1]["content"]}, part)})
        else:
            layout.append({"part": part})
    return {**spelling, "layout": layout, **difference({"role": content_of_ours["role"], "parts": parts}, content)}


def _write(messages: list[Message], loss: Loss) -> Row:
    row: Row = {}
    contents: list[Row] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        extra = taken_back(message, NAME)
        _tell(message, at, loss)
        if message["role"] in ("system", "developer") and ("system" in extra or not contents) and "parts" not in row:
            row[extra.get("system", _SYSTEM[0])] = extra.get("told", _instruction_of(text_of(message.get("content"))))
            at += 1
            continue
        group = messages[at : at + (extra["of"] if "of" in extra else _length(messages[at:]))]
        contents.append(_restore_content(group, extra))
        at += len(group)
    return {"contents": contents, **row}


def _tell(message: Message, index: int, loss: Loss) -> None:
    loss.left_out(message, ("timestamp", "retrieval_context"), index)
    if message["role"] != "tool":
        loss.left_out(message, ("name",), index)


def _length(messages: list[Message]) -> int:
    """Return how many messages become one content: results, and what the user says behind them."""
    results = next((at for at, message in enumerate(messages) if message["role"] != "tool"), len(messages))
    if not results:
        return 1
    after = messages[results] if results < len(messages) else None
    return results + (after is not None and after["role"] == "user" and not taken_back(after, NAME))


def _restore_content(group: list[Message], extra: Row) -> Row:
    snake = bool(extra.get("snake"))
    content = _content(group, snake=snake)
    if "layout" not in extra:
        return restore(content, extra)
    results = iter([message for message in group if message["role"] == "tool"])
    calls = iter(cast("list[Row]", group[-1].get("tool_calls") or []))
    parts: list[Row] = []
    for entry in cast("list[Row]", extra["layout"]):
        if "part" in entry:
            parts.append(entry["part"])
        elif "text" in entry:
            parts.append(restore({"text": group[-1]["content"]}, entry["text"]))
        elif "result" in entry and (result := next(results, None)) is not None:
            parts.append(restore(_spell(_response(result), snake), entry["result"]))
        elif "call" in entry and (call := next(calls, None)) is not None:
            parts.append(restore(_spell(_write_call(call), snake), entry["call"]))
    return restore({"role": content["role"], "parts": parts}, extra)


def _content(group: list[Message], *, snake: bool) -> Row:
    """Return the content of messages: results and what the user said, or what the model did."""
    parts: list[Row] = []
    for message in group:
        if message["role"] == "tool":
            parts.append(_spell(_response(message), snake))
            continue
        content: Any = message.get("content")
        if isinstance(content, str):
            parts += [{"text": content}] if content or not message.get("tool_calls") else []
        else:
            media_parts = map(_written_part, cast("list[Row]", content or []))
            parts += [_spell(part, snake) for part in media_parts if part is not None]
        parts += [_spell(_write_call(call), snake) for call in message.get("tool_calls") or ()]
    return {"role": "model" if group[-1]["role"] == "assistant" else "user", "parts": parts}


def _spell(part: Row, snake: bool) -> Row:
    """Return a part in the spelling of Python, if asked."""
    if not snake:
        return part
    return {_to_snake(key): _inner(value) if key in _MEDIA else value for key, value in part.items()}


def _inner(value: Row) -> Row:
    return {_to_snake(key): item for key, item in value.items()}


@cache
def _to_snake(key: str) -> str:
    return re.sub("([A-Z])", r"_\1", key).lower()


def _write_call(call: Row) -> Row:
    return {"functionCall": {**_identity(call.get("id")), "name": name_of(call), "args": arguments_of(call)}}


def _response(message: Message) -> Row:
    content: Any = message.get("content")
    text = content if isinstance(content, str) else text_of(content)
    try:
        value = parse(text)
    except BrokenJson:
        value = None
    key = _ERROR if did_fail(message) else _WRAPS[0]
    response = cast("Row", value) if isinstance(value, dict) else {key: text}
    return {
        "functionResponse": {
            **_identity(message.get("tool_call_id")),
            **({"name": message["name"]} if message.get("name") is not None else {}),
            "response": response,
        }
    }


def _identity(identity: Any) -> Row:
    return {"id": identity} if isinstance(identity, str) and not identity.startswith(MADE_UP) else {}


def _written_part(part: Row) -> Row | None:
    match part:
        case {"type": "text", "text": text}:
            return {"text": text}
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "file", "file": {"file_data": str(url)}}:
            if (held_in := split_data_url(url)) is not None:
                kind, data = held_in
                return {"inlineData": {"mimeType": kind, "data": data}}
            return {"fileData": {"fileUri": url, **({"mimeType": part["mimeType"]} if "mimeType" in part else {})}}
        case _:
            return None


FORMAT = Messages(
    NAME,
    "Gemini contents",
    ("contents", "history"),
    _is_certain,
    lambda item: parts_of(item) is not None,
    _read,
    _write,
).format()
