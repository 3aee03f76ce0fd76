"""The messages of a question become JSON once: for the key that its reply is kept under, and for the request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall
from vivavoce.models.cache import reply_key
from vivavoce.models.model import Request
from vivavoce.wire.chat import WireMessages, body_bytes, json_bytes

ASKED: list[AnyMessage] = [
    SystemMessage(content="Be kind."),
    HumanMessage(content='Grüß dich «🙂» \\ " \n'),
    AIMessage(tool_calls=[ToolCall(id="c1", name="look", args={"at": "Ü"})]),
]


def test_the_keys_of_kept_replies_stay_what_they_were() -> None:
    plain = Request([HumanMessage(content="hello")])
    full = Request(ASKED, schema={"type": "object"}, tools=[{"type": "function"}], settings={"temperature": 0}, trial=2)
    half = Request([HumanMessage(content="half \ud83d")])
    assert [reply_key("m", {"seed": 1}, one) for one in (plain, full, half)] == [
        "f39f4269c64b4a8189d2f059e8a8e40b",
        "982c153d280ca9ef3fc215fab62dadee",
        "7c6ae73f07eda9cbfd0e2fad5ec73428",
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m", "messages": Request(ASKED).wire, "temperature": 0, "response_format": {"type": "x"}},
        {"messages": Request(ASKED).wire},
        {"model": "m", "messages": Request([]).wire},
        {"messages": Request(ASKED).wire, "seed": 1},
    ],
)
def test_a_body_is_the_same_whether_its_messages_were_written_before(body: dict[str, Any]) -> None:
    assert body_bytes(body) == json_bytes({**body, "messages": list(body["messages"])})


def test_a_body_with_half_a_character_is_still_json() -> None:
    body = {"model": "m", "messages": Request([HumanMessage(content="half \ud83d")]).wire, "temperature": 0}
    assert json.loads(body_bytes(body)) == body


def test_the_messages_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(ASKED)
    reply_key("m", {}, request)
    assert request.wire is request.wire
    monkeypatch.setitem(request.wire.__dict__, "json", b'["written before"]')
    assert body_bytes({"messages": request.wire}) == b'{"messages":["written before"]}'
    assert isinstance(request.wire, WireMessages)
