from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from vivavoce.messages import AIMessage, HumanMessage, SystemMessage, ToolCall
from vivavoce.models.cache import decode_reply, encode_reply, reply_key
from vivavoce.models.model import ModelReply, Request
from vivavoce.records.score import Usage

ASKED = Request([SystemMessage(content="Be kind."), HumanMessage(content="Good?")], schema={"type": "object"})
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Verdict(BaseModel):
    score: float


def test_a_key_is_32_hexadecimal_digits_and_stays_the_same() -> None:
    assert reply_key("openai:m", {}, ASKED) == "b5de738816b5876b63c6a00f3819c534"
    assert reply_key("m", {}, replace(ASKED, schema=Verdict)) == reply_key("m", {}, replace(ASKED, schema=Verdict))


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, messages=[*ASKED.messages, AIMessage(content="Yes.")]),
        replace(ASKED, messages=list(reversed(ASKED.messages))),
        replace(ASKED, schema=None),
        replace(ASKED, schema=Verdict),
        replace(ASKED, tools=[TOOL]),
        replace(ASKED, settings={"temperature": 1}),
        replace(ASKED, trial=1),
    ],
)
def test_whatever_decides_the_answer_changes_the_key(other: Request) -> None:
    assert reply_key("m", {}, other) != reply_key("m", {}, ASKED)


def test_another_model_has_another_key() -> None:
    assert reply_key("m", {}, ASKED) != reply_key("n", {}, ASKED)


def test_settings_count_as_they_would_be_sent() -> None:
    hot = replace(ASKED, settings={"temperature": 1, "seed": 2})
    assert reply_key("m", {"seed": 2, "temperature": 1}, ASKED) == reply_key("m", {}, hot)
    assert reply_key("m", {"temperature": 0}, hot) == reply_key("m", {}, hot)


def test_our_own_notes_on_a_message_are_not_sent_and_do_not_count() -> None:
    noted = [HumanMessage(content="Good?", metadata={"seen": True})]
    assert reply_key("m", {}, Request(noted)) == reply_key("m", {}, Request([HumanMessage(content="Good?")]))


def test_text_that_is_not_utf8_has_a_key_and_is_kept() -> None:
    asked, other = Request([HumanMessage(content="\ud800")]), Request([HumanMessage(content="\ud801")])
    assert reply_key("m", {}, asked) != reply_key("m", {}, other)
    assert decode_reply(encode_reply(ModelReply("a\ud800"))).text == "a\ud800"


@given(
    st.text(), st.none() | st.dictionaries(st.text(), json_values, max_size=3), st.dictionaries(st.text(), st.text())
)
def test_a_reply_comes_back_as_it_was(text: str, parsed: dict[str, Any] | None, applied: dict[str, str]) -> None:
    calls = [ToolCall(id="c-1", name="look", args={"at": text})]
    reply = ModelReply(text, parsed, calls, Usage(input_tokens=3, calls=1), applied)
    assert decode_reply(encode_reply(reply)) == reply


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", "unexpected format"),
        ("{}", "'text' is missing"),
        ('{"text": 1, "parsed": null, "usage": null}', "the reply must be text"),
        ('{"text": "", "parsed": [], "usage": null}', "the reply must be text"),
        ('{"text": "", "parsed": null, "usage": null, "tool_calls": [{}], "applied": {}}', "function: is missing"),
    ],
)
def test_what_is_no_reply_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_reply(text)
