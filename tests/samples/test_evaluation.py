from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from vivavoce.samples.evaluation import MultiTurnSample, SingleTurnSample

USER = {"role": "user", "content": "hi"}


def asks(*ids: str | None) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": id_, "name": "f", "args": {}} for id_ in ids]}


def result(call: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": "", "tool_call_id": call}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "assistant", "content": "Welcome"}, USER, USER],
        [USER, asks("a", "b"), result("b"), result("a")],
        [USER, asks(None, None), result(), result()],
        [USER, asks("a", "b"), result(), result("b")],
        [USER, asks("a")],
        [USER, {"role": "assistant", "refusal": "No."}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}],
    ],
)
def test_a_possible_conversation_is_accepted(messages: list[dict[str, Any]]) -> None:
    sample = MultiTurnSample.model_validate({"user_input": messages})
    assert [message["role"] for message in sample.to_messages()] == [message["role"] for message in messages]


IMPOSSIBLE: list[tuple[list[dict[str, Any]], str]] = [
    ([], "needs at least one message"),
    ([result()], r"message 0 \(tool\) must follow an assistant message with a tool call"),
    ([USER, result()], r"message 1 \(tool\) must follow"),
    ([USER, {"role": "assistant", "content": "x"}, result()], r"message 2 \(tool\) must follow"),
    ([USER, asks("a"), result("a"), result("a")], r"message 3 \(tool\) must follow"),
    ([USER, asks("a"), USER, result("a")], r"message 3 \(tool\) must follow"),
    ([USER, asks("a", "b"), result("c")], r"message 2 \(tool\) answers call 'c', but the open calls are: a, b"),
    ([USER, {"role": "assistant", "content": " "}], r"message 1 \(assistant\) is empty.*and no tool call"),
    ([{"role": "user", "content": []}], r"message 0 \(user\) is empty: it has no content"),
]


@pytest.mark.parametrize(("messages", "rule"), IMPOSSIBLE)
def test_an_impossible_conversation_is_an_error_naming_the_message(messages: list[dict[str, Any]], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        MultiTurnSample.model_validate({"user_input": messages})


def test_ids_of_documents_stay_numbers_or_texts() -> None:
    ids = SingleTurnSample.model_validate({"retrieved_context_ids": [1, "1", 3.0, "x"]}).retrieved_context_ids
    assert repr(ids) == "[1, '1', 3, 'x']"


@pytest.mark.parametrize("kind", [SingleTurnSample, MultiTurnSample])
def test_nothing_is_taken_silently(kind: type[SingleTurnSample | MultiTurnSample]) -> None:
    with pytest.raises(ValidationError, match="referense"):
        kind.model_validate({"user_input": "x", "referense": "typo"})


def test_a_sample_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="a sample with no field says nothing"):
        SingleTurnSample()


def test_features_are_the_fields_that_hold_something() -> None:
    sample = SingleTurnSample(user_input="", reference=None, rubrics={"a": "b"})
    assert sample.get_features() == ["user_input", "rubrics"]
    assert sample.to_dict() == {"user_input": "", "reference": None, "rubrics": {"a": "b"}}


def test_a_conversation_reads_as_lines() -> None:
    sample = MultiTurnSample(
        user_input=[
            HumanMessage(content="Weather?"),
            AIMessage(content="Let me see.", tool_calls=[ToolCall(name="f", args={"at": "NY"})]),
            ToolMessage(content="75°F"),
            AIMessage(content="75 degrees."),
        ],
        reference="the weather",
    )
    lines = ["Human: Weather?", "AI: Let me see.", '  → f({"at": "NY"})', "Tool: 75°F", "AI: 75 degrees."]
    assert sample.pretty_repr().splitlines() == [*lines, "---", "reference: the weather"]


def test_the_notebook_view_escapes_every_text() -> None:
    html = SingleTurnSample(user_input="<script>", rubrics={"<b>": "&"})._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script>" not in html
    assert "<b>" not in html
