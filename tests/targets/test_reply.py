from __future__ import annotations

import json

import pytest

from vivavoce.errors import TargetFault
from vivavoce.messages import AIMessage, ToolCall, ToolMessage
from vivavoce.targets.target import Reply, read_reply

CALL = AIMessage(tool_calls=[ToolCall(id="1", name="add", args={"a": 2})])
RESULT = ToolMessage(content="4", tool_call_id="1")


def test_a_text_is_an_assistant_message() -> None:
    assert read_reply("hi", "bot").messages == [AIMessage(content="hi")]


def test_a_message_may_be_an_object_or_a_dict() -> None:
    assert read_reply(AIMessage(content="hi"), "bot").messages == [AIMessage(content="hi")]
    assert read_reply({"role": "assistant", "content": "hi"}, "bot").messages == [AIMessage(content="hi")]


def test_a_list_holds_tool_calls_and_results_in_order() -> None:
    mixed = [CALL, RESULT.to_dict(), AIMessage(content="It is 4.")]
    assert read_reply(mixed, "bot").messages == [CALL, RESULT, AIMessage(content="It is 4.")]


def test_a_reply_is_passed_on() -> None:
    reply = Reply([CALL])
    assert read_reply(reply, "bot") is reply


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "bot returned nothing"),
        (42, "bot returned something of type int"),
        (b"hi", "bot returned something of type bytes"),
        ([], "bot returned an empty list"),
        ([1], "bot returned something that is not a list of messages"),
        ({"text": "hi"}, r"an object with the keys 'text', which is not a message; .* json.dumps\(value\)"),
        ({"total": 12.5, "items": ["tea"]}, "an object with the keys 'total', 'items', which is not a message"),
        ({}, "an empty object"),
        (12.5, r"something of type float; .* json.dumps\(value\)"),
        ([{"total": 1}], "a list whose item 0 is an object with the keys 'total', which is not a message"),
        ({"content": "hi"}, "needs a role"),
        ([{"role": "user", "content": "hi"}], "message 0 of role 'user'"),
    ],
)
def test_anything_else_is_a_format_fault_that_shows_it(returned: object, said: str) -> None:
    with pytest.raises(TargetFault, match=said) as caught:
        read_reply(returned, "bot")
    assert caught.value.kind == "format"
    shown = json.dumps(returned) if isinstance(returned, dict | list) else repr(returned)
    assert shown in (caught.value.evidence or "")
