"""ShareGPT: `{"conversations": [{"from": "human", "value": "…"}]}`, as fine-tuning tools read and write it.

Calls and results are texts there (`function_call` and `observation` in LLaMA Factory's spelling).
Source: the data formats that LLaMA Factory and Axolotl document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    arguments_of,
    name_of,
    set_aside,
    taken_back,
    text_of,
    tool_call,
)

NAME = "sharegpt"
_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function_response"), "tool"),
    **dict.fromkeys(("function_call",), "assistant"),
    "system": "system",
}
_SPEAKERS = {"user": "human", "assistant": "gpt", "system": "system", "developer": "system", "tool": "tool"}


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and "from" in item and "value" in item


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    messages: list[Message] = []
    if isinstance(instructions := beside.pop("system", None), str) and instructions:
        messages.append({"role": "system", "content": instructions, "metadata": {NAME: {"beside": True}}})
    last_call: str | None = None
    for index, item in enumerate(items):
        fields = cast("Row", item) if isinstance(item, dict) else {}
        speaker, value = fields.get("from"), fields.get("value")
        if not isinstance(speaker, str) or speaker not in _ROLES or not isinstance(value, str):
            raise Unreadable(f"message {index}: needs 'from' ({', '.join(_ROLES)}) and the text 'value'")
        message: Message = {"role": _ROLES[speaker], "content": value}
        if speaker == "function_call":
            message, last_call = _with_call(value, index, loss)
        elif message["role"] == "tool" and last_call is not None:
            message["tool_call_id"], last_call = last_call, None
        extra = {key: other for key, other in fields.items() if key not in ("from", "value")}
        for key in extra:
            loss.unknown(key, index)
        set_aside(message, NAME, {**extra, **({} if _SPEAKERS[message["role"]] == speaker else {"from": speaker})})
        messages.append(message)
    return messages


def _with_call(value: str, index: int, loss: Loss) -> tuple[Message, str | None]:
    """Return the message of a call that is written as JSON; one that is not stays a text."""
    try:
        call = parse(value)
    except BrokenJson:
        call = None
    if not isinstance(call, dict) or not isinstance(cast("Row", call).get("name"), str):
        loss.add_dropped("a tool call, now text: not JSON with a name", index)
        return {"role": "assistant", "content": value}, None
    called, made_up = cast("Row", call), f"call_{index}"
    loss.add_guess("id of a tool call", index)
    our_call = tool_call(made_up, called["name"], called.get("arguments"))
    return {"role": "assistant", "content": None, "tool_calls": [our_call]}, made_up


def _write(messages: list[Message], loss: Loss) -> Row:
    """Write texts; a call is the text of its JSON, in a message of its own."""
    entries: list[Row] = []
    row: Row = {}
    for index, message in enumerate(messages):
        extra = taken_back(message, NAME)
        if extra.pop("beside", False) and index == 0:
            row["system"] = message["content"]
            continue
        content: object = message.get("content")
        if isinstance(content, list) and any(part.get("type") != "text" for part in cast("list[Row]", content)):
            loss.add_dropped("parts of a message that are not text", index)
        text = text_of(message.get("content"))
        calls = cast("list[Row]", message.get("tool_calls") or [])
        if text or not calls:
            entries.append({"from": extra.pop("from", _SPEAKERS[message["role"]]), "value": text, **extra})
        entries += [{"from": "function_call", "value": _call_text(call)} for call in calls]
    return {"conversations": entries, **row}


def _call_text(call: Row) -> str:
    return json.dumps({"name": name_of(call), "arguments": arguments_of(call)}, ensure_ascii=False)


FORMAT = Messages(NAME, "ShareGPT", ("conversations",), _is_message, _is_message, _read, _write).format()
