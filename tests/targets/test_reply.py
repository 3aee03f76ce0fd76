from __future__ import annotations

import pytest

from vivavoce.errors import TargetFault
from vivavoce.messages import AIMessage, ToolCall, ToolMessage
from vivavoce.targets.reply import read_reply
from vivavoce.targets.target import Reply

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
        ({"text": "hi"}, "needs a role"),
        ([{"role": "user", "content": "hi"}], "message 0 of role 'user'"),
    ],
)
def test_anything_else_is_a_format_fault_that_shows_it(returned: object, said: str) -> None:
    with pytest.raises(TargetFault, match=said) as caught:
        read_reply(returned, "bot")
    assert caught.value.kind == "format"
    assert repr(returned) in (caught.value.evidence or "")
