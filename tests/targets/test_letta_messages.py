from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.messages import AIMessage, AnyMessage, ToolMessage
from vivavoce.targets.letta_messages import LettaTurn, read_usage

STOP = {"message_type": "stop_reason", "stop_reason": "end_turn"}


def turn(*events: dict[str, Any]) -> list[AnyMessage]:
    reading = LettaTurn()
    for event in [*events, STOP]:
        reading.read(event)
    return reading.reply().messages


def said(id_: str, text: str) -> dict[str, Any]:
    return {"message_type": "assistant_message", "id": id_, "content": text}


def called(kind: str, **call: str) -> dict[str, Any]:
    return {"message_type": kind, "id": "m", "tool_call": {"tool_call_id": "c1", **call}}


@given(st.lists(st.text(min_size=1), min_size=1))
def test_a_message_is_the_same_in_however_many_pieces_it_comes(pieces: list[str]) -> None:
    (whole,) = turn(said("m", "".join(pieces)))
    assert turn(*(said("m", piece) for piece in pieces)) == [whole]


@given(st.dictionaries(st.text(), st.text()), st.integers(0, 20))
def test_arguments_in_two_pieces_are_the_arguments(arguments: dict[str, str], cut: int) -> None:
    text = json.dumps(arguments)
    first = called("tool_call_message", name="find", arguments=text[:cut])
    (message,) = turn(first, called("tool_call_message", arguments=text[cut:]))
    assert isinstance(message, AIMessage)
    assert [call.args for call in message.tool_calls or ()] == [arguments]


def test_messages_of_different_ids_stay_apart() -> None:
    assert [m.text for m in turn(said("m1", "One"), said("m2", "Two"))] == ["One", "Two"]


def test_a_call_asked_for_and_then_made_is_one_call() -> None:
    call = {"name": "pay", "arguments": "{}"}
    (message,) = turn(called("approval_request_message", **call), called("tool_call_message", **call))
    assert isinstance(message, AIMessage)
    assert [one.name for one in message.tool_calls or ()] == ["pay"]


def test_a_result_told_twice_is_one_result() -> None:
    told = {"tool_call_id": "c1", "tool_return": "paid", "status": "success"}
    messages = turn(
        called("tool_call_message", name="pay"),
        {"message_type": "approval_response_message", "approvals": [{"type": "tool", **told}]},
        {"message_type": "tool_return_message", **told},
    )
    assert [(type(m), m.text) for m in messages] == [(AIMessage, ""), (ToolMessage, "paid")]


def test_an_image_in_a_result_stays_an_image() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    parts = [{"type": "text", "text": "A cat"}, {"type": "image", "source": source}]
    (message,) = turn({"message_type": "tool_return_message", "tool_call_id": "c1", "tool_return": parts})
    assert message.to_dict()["content"] == [
        {"type": "text", "text": "A cat"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_cached_tokens_that_a_backend_leaves_out_of_the_prompt_are_counted() -> None:
    event = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 14, "cached_input_tokens": 4}
    assert read_usage(event).input_tokens == 11
