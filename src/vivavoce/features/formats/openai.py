"""OpenAI's messages: the items of its Responses API, which are read and written, and chat completions.

Items are those of requests (`input`) and responses (`output`), and lists of items. An answer and the calls after it are
one message of ours. Calls of the tools that run at OpenAI are shown where the item has what was called and what came
back; other items (reasoning, searches) are kept next to the next message, and what a file search found is its
`retrieval_context`. Chat completions are written as an endpoint takes them, without what only we add; they are read as
our own rows.
Source: the references of Responses and of chat completions of OpenAI's API, and the types of its Python package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.conversations.format import Format, Loss, Record, Row
from vivavoce.conversations.own_rows import FORMAT as NATIVE
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    difference,
    hand_over,
    name_of,
    objects_in,
    restore,
    set_aside,
    state_outcome,
    taken_back,
    text_in,
    text_of,
    tool_call,
)
from vivavoce.messages import NOT_ON_THE_WIRE

NAME = "openai-responses"
_ROLES = ("user", "assistant", "system", "developer")
_BESIDE = frozenset(
    (
        *("reasoning", "file_search_call", "web_search_call", "image_generation_call", "code_interpreter_call"),
        *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction", "item_reference"),
        *("compaction_trigger", "additional_tools", "tool_search_output"),
    )
)
_FAILED = ("incomplete", "failed")
"""The `status` of an item that did not end well."""
_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "summary_text": "text"}


def _type_of(item: Any) -> str | None:
    """Return the type of an item; that of a message may be left out."""
    if not isinstance(item, Mapping):
        return None
    fields = cast("Row", item)
    type_ = fields.get("type")
    if type_ in (None, "message"):
        content: Any = fields.get("content")
        parts = cast("list[Any]", content) if isinstance(content, list) else []
        is_words = isinstance(content, str | list) and all(isinstance(part, dict) for part in parts)
        is_message = fields.get("role") in _ROLES and is_words
        return "message" if is_message and "tool_calls" not in fields else None
    if not isinstance(type_, str):
        return None
    if type_ in _BESIDE or type_ == "mcp_call" or _is_call(type_, fields) or _is_result(type_, fields):
        return type_
    return None


def _is_call(type_: str, item: Row) -> bool:
    return type_.endswith("_call") and isinstance(item.get("call_id"), str)


def _is_result(type_: str, item: Row) -> bool:
    return type_.endswith("_call_output") and isinstance(item.get("call_id") or item.get("id"), str)


def _is_certain(item: Any) -> bool:
    type_ = _type_of(item)
    if type_ != "message":
        return type_ is not None
    fields = cast("Row", item)
    parts = fields["content"]
    kinds = ("input_text", "output_text", "input_image", *(["refusal"] if fields.get("type") == "message" else []))
    return isinstance(parts, list) and any(
        isinstance(part, dict) and cast("Row", part).get("type") in kinds for part in cast("list[Any]", parts)
    )


class _Reader:
    """Makes messages of items, and holds the items that wait for the next message."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss
        self.messages: list[Message] = []
        self._waiting: Items = []
        self._passages: list[str] = []
        self._may_call = False
        self._agent: str | None = None

    def instructions(self, text: str) -> None:
        """Take the instructions that an endpoint received next to the items."""
        self.messages.append({"role": "system", "content": text, "metadata": {NAME: {"beside": True}}})

    def item(self, item: Any, index: int) -> None:
        """Read the next item."""
        type_ = _type_of(item)
        if type_ is None:
            raise Unreadable(f"item {index}: needs an OpenAI Responses type, or a role and content")
        fields = cast("Row", item)
        if type_ == "message":
            self._message(fields, index)
        elif type_ in _BESIDE:
            self._beside(type_, fields, index)
        elif type_ == "mcp_call":
            self._hosted_call(fields)
        elif type_.endswith("_output"):
            self._result(fields, index)
        else:
            self._call(fields)

    def end(self) -> None:
        """Keep what waits for a message that did not come."""
        if self._waiting:
            if not self.messages:
                raise Unreadable("no message items")
            set_aside(self.messages[-1], NAME, {"after": self._waiting})

    def _add(self, message: Message, extra: Row) -> None:
        if self._waiting:
            extra = {"before": self._waiting, **extra}
            self._waiting = []
        if self._passages and message["role"] == "assistant":
            message["retrieval_context"], self._passages = self._passages, []
        if self._agent is not None and message["role"] == "assistant":
            message["name"] = self._agent
        set_aside(message, NAME, extra)
        self.messages.append(message)
        self._may_call = message["role"] == "assistant"

    def _message(self, item: Row, index: int) -> None:
        message: Message = {"role": item["role"], "content": self._content(item, index)}
        extra: Row = {}
        if item["role"] == "assistant":
            refused = _refusal(item["content"])
            if refused is not None:
                message["refusal"] = refused
            extra = {**_of_answer(item["content"]), **({} if message["content"] else {"said": True})}
        self._add(message, {**extra, **difference(_message_item(message, extra), item)})

    def _content(self, item: Row, index: int) -> Any:
        content: Any = item["content"]
        if isinstance(content, str):
            return content
        parts: list[Row] = []
        for part in cast("list[Any]", content):
            read = _part(part)
            if read is not None:
                parts.append(read)
            elif not isinstance(part, dict) or cast("Row", part).get("type") != "refusal":
                self._loss.aside(str(cast("Row", part).get("type")) if isinstance(part, dict) else "part", index)
        if item["role"] == "assistant":
            for part in cast("list[Any]", content):
                if isinstance(part, dict) and cast("Row", part).get("annotations"):
                    self._loss.aside("annotations", index)
            return text_of(parts) if parts else None
        return parts

    def _beside(self, type_: str, item: Row, index: int) -> None:
        self._loss.aside(type_, index)
        self._waiting.append(item)
        for result in cast("list[Any]", item.get("results") or []) if type_ == "file_search_call" else ():
            if isinstance(result, dict) and isinstance(text := cast("Row", result).get("text"), str):
                self._passages.append(text)

    def _call(self, item: Row) -> None:
        call = _call(item)
        self._asks(call, difference(_call_item(call), item))

    def _asks(self, call: Row, extra: Row) -> None:
        """Add a call to the message that it follows, or to one of its own."""
        if not self._may_call or self._waiting:
            self._add({"role": "assistant", "content": None}, {})
        message = self.messages[-1]
        calls = cast("list[Row]", message.setdefault("tool_calls", []))
        if extra:
            of_calls = taken_back(message, NAME).get("calls")
            set_aside(message, NAME, {"calls": {**(of_calls or {}), str(len(calls)): extra}})
        calls.append(call)

    def _result(self, item: Row, index: int) -> None:
        called = item.get("call_id") or item.get("id")
        output: Any = item.get("output")
        if isinstance(output, str) or output is None:
            content: Any = output
        elif isinstance(output, list):
            read = list(map(_part, cast("list[Any]", output)))
            content = [part for part in read if part is not None] if any(read) else _json(cast("Any", output))
            if any(read) and not all(read):
                self._loss.aside("result parts without an equivalent here", index)
        else:
            content = _json(output)
        message: Message = {"role": "tool", "content": content, "tool_call_id": called}
        state_outcome(message, failed_if(item.get("status") in _FAILED))
        self._add(message, difference(_result_item(message), item))
        if (agent := taken_over(message, self.messages)) is not None:
            hand_over(self.messages, agent)
            self._agent = agent

    def _hosted_call(self, item: Row) -> None:
        """Read a call that ran at OpenAI: the item has what came back, too."""
        call = tool_call(_text(item.get("id")), str(item.get("name")), item.get("arguments"))
        has_ended = item.get("status") in ("completed", *_FAILED)
        if not has_ended and item.get("output") is None and item.get("error") is None:
            self._asks(call, {"hosted": True, "item": item})
            return
        output: Any = item.get("output") if item.get("error") is None else item["error"]
        result: Message = {"role": "tool", "content": output if isinstance(output, str) else _json(output)}
        result["tool_call_id"] = item.get("id")
        state_outcome(result, failed_if(item.get("error") is not None or item.get("status") in _FAILED))
        self._asks(call, {"hosted": True})
        set_aside(result, NAME, {"item": item})
        self.messages.append(result)
        self._may_call = False


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    reader = _Reader(loss)
    if isinstance(beside.get("instructions"), str):
        reader.instructions(beside.pop("instructions"))
    elif beside.get("instructions") is None:
        beside.pop("instructions", None)
    question, output = beside.pop("input", None), beside.pop("output", None)
    if isinstance(question, str):
        reader.item({"role": "user", "content": question}, 0)
    more = cast("Items", output) if isinstance(output, list) else []
    for index, item in enumerate((*items, *more)):
        reader.item(item, index)
    reader.end()
    return reader.messages


def _call(item: Row) -> Row:
    """Return the call of an item; what a tool of OpenAI's own is asked for stands under another key."""
    type_ = str(item["type"])
    if isinstance(item.get("name"), str) and "arguments" in item:
        return tool_call(item["call_id"], item["name"], item["arguments"])
    inputs = {key: item[key] for key in ("input", "action", "actions", "operation", "arguments") if key in item}
    only_input: Any = next(iter(inputs.values())) if len(inputs) == 1 and "input" not in inputs else inputs
    name = item["name"] if isinstance(item.get("name"), str) else type_.removesuffix("_call")
    return tool_call(item["call_id"], name, only_input if isinstance(only_input, dict) else inputs)


def _refusal(content: Any) -> str | None:
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("Row", part).get("refusal") for part in parts if isinstance(part, dict)]
    return next((text for text in texts if isinstance(text, str)), None)


def _of_answer(content: Any) -> Row:
    """Return what is next to the text of an answer that is a single part of nothing but text, as most are."""
    match content:
        case [{"type": "output_text", "text": str(), **others}]:
            return {"part": others}
        case _:
            return {}


def _part(part: Any) -> Row | None:
    """Return a part as ours, None if ours has no such part."""
    match part:
        case {"type": str(type_), "text": str(text)} if type_ in _PARTS:
            others = {key: value for key, value in cast("Row", part).items() if key not in ("type", "text")}
            return {"type": "text", "text": text, **(others if type_ == "input_text" else {})}
        case {"type": "input_image", "image_url": str(url), **more}:
            detail = {"detail": more.pop("detail")} if isinstance(more.get("detail"), str) else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}, **more}
        case {"type": "input_audio", "input_audio": {"data": str(), "format": str()}}:
            return cast("Row", part)
        case {"type": "input_file", **more} if not more.get("file_url"):
            file = {key: value for key, value in more.items() if value is not None}
            return {"type": "file", "file": file} if all(isinstance(value, str) for value in file.values()) else None
        case _:
            return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _write(messages: list[Message], loss: Loss) -> Row:
    row: Row = {}
    items: Items = []
    for index, message in enumerate(messages):
        extra = taken_back(message, NAME)
        if extra.get("beside") and index == 0:
            row["instructions"] = message["content"]
            continue
        items += extra.get("before") or ()
        items += _items(message, extra, index, loss)
        items += extra.get("after") or ()
    return {"input": items, **row}


def _items(message: Message, extra: Row, index: int, loss: Loss) -> Items:
    loss.left_out(message, ("name", "timestamp"), index)
    if message["role"] == "tool":
        if not extra:
            loss.left_out(message, ("outcome",), index)
        return [extra["item"]] if "item" in extra else [restore(_result_item(message), extra)]
    calls = cast("list[Row]", message.get("tool_calls") or [])
    items: Items = []
    if message.get("content") or message.get("refusal") or not calls or "said" in extra:
        items.append(restore(_message_item(message, extra), extra))
    of_calls = cast("Row", extra.get("calls") or {})
    for position, call in enumerate(calls):
        known = cast("Row", of_calls.get(str(position)) or {})
        if "hosted" not in known:
            items.append(restore(_call_item(call), known))
        elif "item" in known:  # it has no result, which has the item of other hosted calls
            items.append(known["item"])
    return items


def _message_item(message: Message, extra: Row) -> Row:
    content: Any = message.get("content")
    if isinstance(content, list):
        content = list(map(_written_part, cast("list[Row]", content)))
    elif "part" in extra:
        content = [{"type": "output_text", "text": content or "", **extra["part"]}]
    elif message.get("refusal") is not None:
        words: list[Any] = [{"type": "output_text", "text": content, "annotations": []}] if content else []
        content = [*words, {"type": "refusal", "refusal": message["refusal"]}]
    return {"role": message["role"], "content": "" if content is None else content}


def _written_part(part: Row) -> Row:
    match part:
        case {"type": "text", **others}:
            return {"type": "input_text", **others}
        case {"type": "image_url", "image_url": {"url": url, **detail}, **others}:
            return {"type": "input_image", "image_url": url, **detail, **others}
        case {"type": "file", "file": file}:
            return {"type": "input_file", **file}
        case _:
            return part


def _call_item(call: Row) -> Row:
    arguments = (call.get("function") or call).get("arguments") or "{}"
    return {"type": "function_call", "call_id": call.get("id"), "name": name_of(call), "arguments": arguments}


def _result_item(message: Message) -> Row:
    content: Any = message.get("content")
    output: Any = list(map(_written_part, cast("list[Row]", content))) if isinstance(content, list) else content
    return {"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output or ""}


def taken_over(result: Message, messages: Sequence[Message]) -> str | None:
    """Return the agent that took over, as the result of a call of the OpenAI Agents SDK says; else None.

    The call is `transfer_to_` and something, and the result an object with the name of the `assistant`.
    """
    content: object = result.get("content")
    if not isinstance(content, str) or not content.startswith("{"):
        return None
    calls = (call for message in messages for call in objects_in(message.get("tool_calls")))
    called = next((call for call in calls if call.get("id") == result.get("tool_call_id")), None)
    if called is None or not name_of(called).startswith("transfer_to_"):
        return None
    try:
        outcome: Any = json.loads(content)
    except ValueError:
        return None
    fields = cast("dict[str, Any]", outcome) if isinstance(outcome, dict) else {}
    return text_in(fields.get("assistant")) if fields.keys() == {"assistant"} else None


RESPONSES = Messages(
    NAME,
    "OpenAI Responses",
    ("input", "items", "output"),
    _is_certain,
    lambda item: _type_of(item) is not None,
    _read,
    _write,
    keeps_outcomes=True,
).format()


def _write_chat(rows: Iterable[Row], loss: Loss) -> Iterator[Any]:
    for row in rows:
        loss.at(row)
        messages: list[Row] = []
        for index, message in enumerate(cast("list[Row]", row.get("messages") or [])):
            loss.left_out(message, NOT_ON_THE_WIRE, index)
            messages.append({key: value for key, value in message.items() if key not in NOT_ON_THE_WIRE})
        yield {"messages": messages}


def _is_chat(record: Record) -> bool:
    return False  # what it writes is a row of ours


CHAT = Format("openai", "OpenAI chat completions", _is_chat, NATIVE.read, _write_chat, keeps_keys=True)
