"""Messages in the form of a Letta server: one row for each thing said, thought, called or returned.

What an assistant thinks, says and calls in one step is one message of ours. What it thought is `reasoning_content`, as
in a reply of a target that is a Letta agent: judges do not see it, functions written for letta-evals do.

Source of the shapes: the types of `letta-client`, under `letta_client/types/agents`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from vivavoce.comparing.call_outcomes import failed_if, is_true
from vivavoce.conversations.format import Loss, Row
from vivavoce.conversations.shapes import (
    Between,
    Message,
    Unreadable,
    did_fail,
    fields_in,
    objects_in,
    set_aside,
    state_outcome,
    text_in,
    text_of,
    time_in,
    tool_call,
    without,
)

NAME = "letta"
UNKNOWN = "1970-01-01T00:00:00Z"
"""The date of a message whose time nobody noted; Letta's messages must have one."""
OTHERS = (
    *("hidden_reasoning_message", "event_message", "internal_message", "summary_message"),
    *("usage_statistics", "stop_reason", "ping"),
)
"""Kinds of rows that are not part of a conversation."""
_READ = ("message_type", "date", "name", "content", "reasoning", "tool_call", "tool_calls", "tool_return")
_READ_OF_RESULTS = (*_READ, "tool_returns", "tool_call_id", "status")


def letta_turns(turns: Sequence[Sequence[Message]]) -> list[list[dict[str, Any]]]:
    """Return the messages of each turn as rows with `message_type`, `id`, `date` and what the type has."""
    return [
        [
            {"id": f"message-{turn}-{place}", **row}
            for place, row in enumerate(row for message in messages for row in _rows(message))
        ]
        for turn, messages in enumerate(turns)
    ]


def _rows(message: Message) -> Iterator[dict[str, Any]]:
    for kind, fields in _parts(message):
        yield {"date": message.get("timestamp") or UNKNOWN, "message_type": kind, **fields}


def _parts(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    role, text = message["role"], text_of(message.get("content"))
    if role == "assistant":
        calls = cast("list[dict[str, Any]]", message.get("tool_calls") or [])
        if reasoning := message.get("reasoning_content"):
            yield "reasoning_message", {"reasoning": str(reasoning)}
        if text or not calls:
            yield "assistant_message", {"content": text}
        for call in calls:
            one = {**call["function"], "tool_call_id": call.get("id") or ""}
            yield "tool_call_message", {"tool_call": one, "tool_calls": [one]}
    elif role == "tool":
        answer = {"tool_call_id": message.get("tool_call_id") or "", "tool_return": text}
        yield "tool_return_message", {"status": "error" if did_fail(message) else "success", **answer}
    else:
        yield ("user_message" if role == "user" else "system_message"), {"content": text}


def read_letta(rows: Sequence[Any], loss: Loss) -> list[Message]:
    """Return our messages of rows; what the assistant thought, said and called in one step is one message.

    Rows that are not part of the conversation are kept in the metadata of the next message.

    Raises:
        Unreadable: a row is not a message, or of a kind that may hold words and is not known here.
    """
    messages: list[Message] = []
    between = Between(NAME)
    for index, row in enumerate(rows):
        fields = fields_in(row)
        if "message_type" not in fields:
            raise Unreadable(f"message {index}: expected an object with message_type")
        first = len(messages)
        try:
            is_said = _take(fields, index, messages, loss)
        except Unreadable as error:
            raise Unreadable(f"message {index}: {error}") from error
        if not is_said:
            loss.aside(str(fields["message_type"]), index)
            between.add(row)
            continue
        _add_beside(fields, messages[first:] or messages[-1:])
        if len(messages) > first:
            between.give_to(messages[first])
    between.end(messages)
    denied = {message.get("tool_call_id") for message in messages if message.get("outcome") == "refused"}
    for message in messages:
        if message["role"] == "tool" and message.get("tool_call_id") in denied:
            message["outcome"] = "refused"  # the server answers a denied call with an error
    return messages


def letta_part(part: Mapping[str, Any]) -> Row | None:
    """Return a part of a content, a text or an image, as one of ours; None for any other."""
    source = fields_in(part.get("source"))
    match part.get("type"):
        case "text" if isinstance(part.get("text"), str):
            return {"type": "text", "text": part["text"]}
        case "image" if isinstance(source.get("data"), str):
            url = f"data:{source.get('media_type') or 'image/png'};base64,{source['data']}"
            return {"type": "image_url", "image_url": {"url": url}}
        case "image" if isinstance(source.get("url"), str):
            return {"type": "image_url", "image_url": {"url": source["url"]}}
        case _:
            return None


def _content(content: Any, index: int, loss: Loss) -> str | list[Row]:
    """Return a content as one of ours: a text, or parts where there are images among it."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise Unreadable(f"the content is a text or a list of parts, not {type(content).__name__}")
    found: list[Row] = []
    for part in map(fields_in, cast("list[Any]", content)):
        if (ours := letta_part(part)) is None:
            loss.add_dropped(f"a part of the type {part.get('type')!r}"[:80], index)
        else:
            found.append(ours)
    return text_of(found) if all(part["type"] == "text" for part in found) else found


def _take(row: Row, index: int, messages: list[Message], loss: Loss) -> bool:
    """Add what a row holds; return whether it is a part of the conversation."""
    match row["message_type"]:
        case "system_message" | "user_message" as kind:
            content = _content(row.get("content"), index, loss)
            messages.append({"role": kind.partition("_")[0], "content": content})
        case "reasoning_message":
            step = _step(messages, "content", "tool_calls", "reasoning_content")
            step["reasoning_content"] = text_in(row.get("reasoning")) or ""
        case "assistant_message":
            _step(messages, "content", "tool_calls")["content"] = _content(row.get("content"), index, loss)
        case "tool_call_message" | "approval_request_message":
            if not (calls := _calls(row, index, loss)):
                return False
            _step(messages).setdefault("tool_calls", []).extend(calls)
        case "tool_return_message" | "approval_response_message":
            results = _results(row)
            messages += [_result(result, row, index, loss) for result in results]
            return bool(results)
        case kind if kind in OTHERS:
            return False
        case kind:
            next_step = "take it out, if it holds nothing that was said"
            raise Unreadable(f"unknown Letta message type '{str(kind)[:80]}'; {next_step}")
    return True


def _add_beside(row: Row, messages: list[Message]) -> None:
    """Add to the messages of a row who speaks and when; keep in the metadata of the last what ours cannot hold."""
    name, time = text_in(row.get("name")), time_in(row.get("date"))
    for message in messages:
        if name is not None:
            message["name"] = name
        if time is not None:
            message.setdefault("timestamp", time)
    known = _READ_OF_RESULTS if messages[-1]["role"] == "tool" else _READ
    set_aside(messages[-1], NAME, without(row, known))


def _step(messages: list[Message], *ended_by: str) -> Message:
    """Return the assistant message that is being read, a new one where the last has one of these parts already."""
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant" or any(last.get(part) is not None for part in ended_by):
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def _calls(row: Row, index: int, loss: Loss) -> list[Row]:
    made: Any = row.get("tool_calls") or row.get("tool_call")
    listed = cast("list[Any]", made if isinstance(made, list) else [made])
    calls = [call for call in map(_call, map(fields_in, listed)) if call is not None]
    if len(calls) < len(listed):
        loss.add_dropped("a call without a name", index, len(listed) - len(calls))
    return calls


def _call(call: Row) -> Row | None:
    """Return a call as an API of Letta lists it, or as an exported agent has it; None for one without a name."""
    function = fields_in(call.get("function")) or call
    name, identity = text_in(function.get("name")), text_in(call.get("tool_call_id")) or text_in(call.get("id"))
    return None if name is None else tool_call(identity, name, function.get("arguments", function.get("input")))


def _results(row: Row) -> list[Row]:
    """Return the results in a row; among the answers to requests for approval are those of tools that ran elsewhere."""
    if row["message_type"] == "tool_return_message":
        return objects_in(row.get("tool_returns")) or [row]
    answers = objects_in(row.get("approvals"))
    return [answer for answer in answers if "tool_return" in answer or answer.get("approve") is False]


def _result(result: Row, row: Row, index: int, loss: Loss) -> Message:
    value: Any = result.get("tool_return")
    known = value is None or isinstance(value, str | list)
    content = _content(value, index, loss) if known else json.dumps(value, ensure_ascii=False)
    message: Message = {"role": "tool", "content": content}
    if (identity := text_in(result.get("tool_call_id"))) is not None:
        message["tool_call_id"] = identity
    if result.get("approve") is False:
        message["content"] = text_in(result.get("reason")) or "denied"
        state_outcome(message, "refused")
    else:
        state_outcome(message, failed_if(result.get("status") == "error" or is_true(result.get("is_error"))))
    if result is not row:
        others = without(result, (*_READ_OF_RESULTS, "type"))
        set_aside(message, NAME, {key: value for key, value in others.items() if value != []})
    return message
