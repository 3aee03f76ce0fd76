"""AutoGen: messages of AgentChat and of its models, results of tasks, and saved teams; the speakers are kept as names.

Source: the message classes of autogen-agentchat and autogen-core 0.7.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if, is_true
from vivavoce.conversations.format import NO_MESSAGES, Loss, Place, Record, Row
from vivavoce.conversations.shapes import (
    Between,
    Items,
    Message,
    Messages,
    Unreadable,
    fields_in,
    items_in,
    objects_in,
    set_aside,
    state_outcome,
    text_in,
    texts_in,
    time_in,
    tool_call,
    without,
)

NAME = "autogen"
_WITH_TEXT = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
_OF_MODELS = ("UserMessage", "AssistantMessage", "SystemMessage")
_CALLED = "ToolCallRequestEvent"
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_STRUCTURED = "StructuredMessage"
_CODE = ("CodeGenerationEvent", "CodeExecutionEvent")
_EVENTS = ("ThoughtEvent", "MemoryQueryEvent", "UserInputRequestedEvent", "SelectSpeakerEvent", "SelectorEvent")
_CHUNK = "ModelClientStreamingChunkEvent"
_CERTAIN = (*_WITH_TEXT, *_RESULTS, *_CODE, *_EVENTS, _CALLED, _CHUNK)
_OF_MESSAGE = frozenset(("type", "source", "content", "created_at", "tool_calls", "results"))
_USERS = ("user", "human", "admin")


def _kind(item: Any) -> str:
    kind: object = fields_in(item).get("type")
    return kind.partition("[")[0] if isinstance(kind, str) else ""


def _is_certain(item: Any) -> bool:
    kind = _kind(item)
    return kind in _CERTAIN or (kind in (*_OF_MODELS, _STRUCTURED) and "source" in item)


def _is_message(item: Any) -> bool:
    return _kind(item) in (*_CERTAIN, *_OF_MODELS, _STRUCTURED)


class _Speakers:
    """Who of the speakers is the user: the one who is called so, or else the one who begins."""

    def __init__(self, items: list[Row], loss: Loss) -> None:
        sources = [text_in(item.get("source")) or "" for item in items if _kind(item) in _WITH_TEXT]
        self._users = {source for source in sources if source.lower().startswith(_USERS)}
        if sources and not self._users:
            loss.add_guess("that the first speaker is the user")
            self._users = {sources[0]}

    def role(self, item: Row) -> str:
        return "user" if item.get("source") in self._users else "assistant"


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    objects = objects_in(items)
    speakers = _Speakers([item for item in objects if _hashable(item)], loss)
    messages: list[Message] = []
    between = Between(NAME)
    recalled: list[str] = []
    for item in objects:
        kind, index = _kind(item), len(messages)
        if kind == _CHUNK:
            loss.add_repeated("chunks of messages that also come complete")
        elif kind == "MemoryQueryEvent":
            recalled += texts_in([part.get("content") for part in objects_in(item.get("content"))])
        elif kind in _RESULTS:
            messages += [_result(result, item) for result in objects_in(item.get("content"))]
        elif not _is_message(item) or kind in _EVENTS:
            loss.aside(kind or "something that is not a message", index)
            between.add(item)
        else:
            messages.append(_message(item, kind, speakers, index, loss))
        if len(messages) > index:
            between.give_to(messages[index])
            if recalled and messages[index]["role"] == "assistant":
                messages[index]["retrieval_context"], recalled = recalled, []
    between.end(messages)
    if not messages:
        raise Unreadable(NO_MESSAGES)
    return messages


def _hashable(item: Row) -> bool:
    return isinstance(item.get("source"), str | None)


def _message(item: Row, kind: str, speakers: _Speakers, index: int, loss: Loss) -> Message:
    content = item.get("content")
    extra = {key: value for key, value in without(item, _OF_MESSAGE).items() if value != {}}
    if kind == "ToolCallSummaryMessage":
        loss.add_repeated("calls and results in a call summary")
    message: Message = {"role": _role(item, kind, speakers), "content": content if isinstance(content, str) else None}
    if kind == "CodeExecutionEvent":
        message["content"] = text_in(fields_in(item.get("result")).get("output")) or ""
        state_outcome(message, failed_if(fields_in(item.get("result")).get("exit_code")))
    elif isinstance(content, list) and (kind == _CALLED or message["role"] == "assistant"):
        calls = objects_in(cast("list[Any]", content))
        message["tool_calls"] = [_call(call) for call in calls if "name" in call]
    if isinstance(content, list) and not message.get("tool_calls"):
        message.pop("tool_calls", None)
        message["content"] = _parts(cast("list[Any]", content), index, loss)
    elif isinstance(content, dict):
        message["content"] = json.dumps(content, ensure_ascii=False)
        extra["content"] = content
    source = text_in(item.get("source"))
    if source and source != "user":
        message["name"] = source
    receiver = text_in(item.get("target")) if kind == "HandoffMessage" else None
    if receiver and message["role"] == "assistant":
        message["handoff_to"] = receiver
    if (time := time_in(item.get("created_at"))) is not None:
        message["timestamp"] = time
    if kind not in ("TextMessage", _CALLED, *_OF_MODELS):
        extra["type"] = item.get("type")
    if extra.get("thought"):
        loss.aside("thought", index)
    set_aside(message, NAME, extra)
    return message


def _role(item: Row, kind: str, speakers: _Speakers) -> str:
    match kind:
        case "SystemMessage":
            return "system"
        case "UserMessage":
            return "user"
        case "CodeExecutionEvent":
            return "tool"
        case "AssistantMessage" | "ToolCallRequestEvent" | "CodeGenerationEvent" | "ToolCallSummaryMessage":
            return "assistant"
        case _:
            return speakers.role(item) if _hashable(item) else "assistant"


def _call(call: Row) -> Row:
    return tool_call(text_in(call.get("id")), text_in(call.get("name")) or "", call.get("arguments"))


def _result(result: Row, item: Row) -> Message:
    content = result.get("content")
    text = content if isinstance(content, str) or content is None else json.dumps(content, ensure_ascii=False)
    message: Message = {"role": "tool", "content": text, "tool_call_id": text_in(result.get("call_id"))}
    if name := text_in(result.get("name")):
        message["name"] = name
    if (time := time_in(item.get("created_at"))) is not None:
        message["timestamp"] = time
    state_outcome(message, failed_if(is_true(result.get("is_error"))))
    return message


def _parts(content: list[Any], index: int, loss: Loss) -> list[Row] | None:
    parts: list[Row] = []
    for part in content:
        data: object = fields_in(part).get("data")
        if isinstance(part, str):
            parts.append({"type": "text", "text": part})
        elif isinstance(data, str):
            url = data if data.startswith("data:") else f"data:image/png;base64,{data}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            loss.add_dropped("a part that is neither text nor image", index)
    return parts or None


def _thread(record: Record) -> Record:
    """Return the messages of a saved team, which its manager keeps, or of a saved agent as a record."""
    fields = record.fields or {}
    states = fields_in(fields.get("agent_states")).values()
    threads = [
        *(fields_in(state).get("message_thread") for state in states),
        fields_in(fields.get("llm_context")).get("messages"),
    ]
    lists = [thread for thread in map(items_in, threads) if thread]
    return record._replace(value={"messages": lists[0]}) if lists else record


_MESSAGES = Messages(NAME, "AutoGen messages", ("messages",), _is_certain, _is_message, _read).format()


def _threads(records: Iterable[Record], loss: Loss) -> Iterator[tuple[Place, Row]]:
    assert _MESSAGES.read is not None
    return _MESSAGES.read(map(_thread, records), loss)


def _fits(record: Record) -> bool:
    return _MESSAGES.fits(_thread(record))


FORMAT = replace(_MESSAGES, fits=_fits, read=_threads)
