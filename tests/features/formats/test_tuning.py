"""Files for tuning hold the conversations that are labelled good, in the shape that the providers' packages know."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from google.genai import types
from openai.types.chat import ChatCompletionMessageParam
from pydantic import ConfigDict, TypeAdapter

from vivavoce.conversations.format import Format, Loss, Row, format_named
from vivavoce.features.formats.conversion import texts
from vivavoce.features.formats.tuning import decided_by, verdict

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": "1042"}'}}
TOOL: Row = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
MESSAGES: list[Row] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is 1042?", "timestamp": "2026-11-01T10:00:00Z"},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "content": "sent", "tool_call_id": "c1"},
    {"role": "assistant", "content": "It is on its way."},
    {"role": "user", "content": "Thanks!"},
]
GOOD: Row = {"id": "a", "messages": MESSAGES, "labels": {"passed": True}, "metadata": {"tools": [TOOL]}}
BAD: Row = {
    "id": "b",
    "messages": [*MESSAGES[:2], {"role": "assistant", "content": "No idea."}],
    "labels": {"passed": False},
}


def write_rows(name: str, rows: Iterable[Row]) -> tuple[list[Any], Loss]:
    loss = Loss()
    return [json.loads(line) for line in texts(rows, format_named(name), loss)], loss


def test_openai_imitates_good_conversations_up_to_the_last_reply() -> None:
    [line], loss = write_rows("openai-tuning", [GOOD, BAD, {"id": "c", "messages": MESSAGES}])
    assert [message["role"] for message in line["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    assert all("timestamp" not in message for message in line["messages"])
    assert line["tools"] == [TOOL]
    adapter: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam], config=ConfigDict(extra="forbid"))
    adapter.validate_python(line["messages"])
    assert [(entry.what, entry.count) for entry in loss.entries()] == [
        ("conversation that is labelled as failed", 1),
        ("conversation that no label calls good: neither labels.people nor labels.passed decides", 1),
        ("messages after the last reply", 1),
    ]


def test_openai_prefers_the_turn_of_the_good_conversation_where_they_part() -> None:
    [line], loss = write_rows("openai-preference", [GOOD, BAD])
    assert line["input"] == {
        "messages": [MESSAGES[0], {"role": "user", "content": "Where is 1042?"}],
        "tools": [TOOL],
        "parallel_tool_calls": True,
    }
    assert [message["role"] for message in line["preferred_output"]] == ["assistant", "tool", "assistant"]
    assert line["non_preferred_output"] == [{"role": "assistant", "content": "No idea."}]
    assert loss.is_lossless


def test_pairs_part_in_a_later_turn_too() -> None:
    messages = [*MESSAGES[:5], {"role": "user", "content": "When?"}]
    rows = [
        {"messages": [*messages, {"role": "assistant", "content": answer}], "labels": {"passed": passed}}
        for answer, passed in (("Tomorrow.", True), ("I do not know.", False), ("Never.", False))
    ]
    lines, _ = write_rows("openai-preference", rows)
    assert [line["non_preferred_output"][0]["content"] for line in lines] == ["I do not know.", "Never."]
    assert all(len(line["input"]["messages"]) == len(messages) for line in lines)


def test_what_makes_no_pair_is_told() -> None:
    alone: Row = {"id": "d", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}
    same = [{**alone, "labels": {"passed": True}}, {**alone, "labels": {"passed": False}}]
    assert write_rows("openai-preference", [{**alone, "labels": {"passed": True}}])[1].entries()[0].what == (
        "good conversation without one to pair it with"
    )
    lines, loss = write_rows("openai-preference", same)
    assert lines == []
    assert loss.entries()[0].what == "pair with identical assistant messages"


def test_claude_gets_texts_in_turn() -> None:
    [line], loss = write_rows("anthropic-tuning", [GOOD])
    assert line == {
        "system": "Be kind.",
        "messages": [
            {"role": "user", "content": "Where is 1042?"},
            {"role": "assistant", "content": "I look.\n\nIt is on its way."},
        ],
    }
    assert {entry.what for entry in loss.entries()} == {
        *("tool call", "result of a tool", "messages after the last reply"),
    }


def test_gemini_gets_contents_that_its_package_reads() -> None:
    [line], _ = write_rows("gemini-tuning", [GOOD])
    contents = [types.Content.model_validate(content) for content in line["contents"]]
    assert [content.role for content in contents] == ["user", "model", "user", "model"]
    assert line["contents"][1]["parts"] == [
        {"text": "I look."},
        {"functionCall": {"name": "find", "args": {"order": "1042"}}},
    ]
    assert line["contents"][2]["parts"][0]["functionResponse"] == {"name": "find", "response": {"result": "sent"}}
    types.Content.model_validate(line["systemInstruction"])
    types.Tool.model_validate(line["tools"][0])


def test_gemini_prefers_texts_only() -> None:
    better: Row = {"messages": [*MESSAGES[:2], {"role": "assistant", "content": "Soon."}], "labels": {"passed": True}}
    [line], loss = write_rows("gemini-preference", [better, BAD, GOOD])
    assert [completion["score"] for completion in line["completions"]] == [1, 0]
    assert line["contents"][-1]["role"] == "user"
    assert [entry.what for entry in loss.entries()] == ["pair with tool calls"]


@pytest.mark.parametrize(
    ("labels", "decided"),
    [
        ({"passed": True}, True),
        ({"passed": True, "people": {"goal": "fail"}}, False),
        ({"passed": False, "people": {"goal": "pass", "tone": "pass"}}, True),
        ({"passed": True, "people": {"goal": "pass", "tone": "fail"}}, None),
        ({"passed": None}, None),
        (["passed"], None),
        ({"people": 3}, None),
        (None, None),
    ],
)
def test_people_come_before_graders(labels: Any, decided: bool | None) -> None:
    assert verdict({"labels": labels}) is decided


def test_a_label_of_a_dataset_decides_when_it_is_named() -> None:
    loss = Loss()
    rows: list[Row] = [{"labels": {"reward": value}} for value in (1.0, 0.4, [1, 0, 1], "good")] + [{}]
    result = [row["labels"]["passed"] for row in decided_by(rows, "reward", 0.5, loss)]
    assert result == [True, False, True, None]
    assert loss.entries()[0].kind == "broken"


@pytest.mark.parametrize(
    "name", ["openai-tuning", "openai-preference", "anthropic-tuning", "gemini-tuning", "gemini-preference", "openai"]
)
@pytest.mark.parametrize(
    "row",
    [
        {},
        {"messages": 3},
        {"messages": []},
        {"messages": [5], "labels": {"passed": True}},
        {"messages": [{"role": "assistant", "content": None}], "labels": {"passed": True}},
        {"messages": [{"role": "tool", "content": "x"}], "labels": {"passed": False}, "metadata": 7},
        {"input": "What?", "labels": {"passed": True}},
    ],
)
def test_rows_that_hold_nothing_to_imitate_are_left_out_and_told(name: str, row: Row) -> None:
    form: Format = format_named(name)
    loss = Loss()
    lines = list(texts([row, GOOD, BAD], form, loss))
    assert len(lines) >= 1 or name == "gemini-preference"
    if "messages" not in row or row["messages"] == 3:
        assert not loss.is_lossless
