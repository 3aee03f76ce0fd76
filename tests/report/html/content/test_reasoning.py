from __future__ import annotations

from typing import Any

import pytest

from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.report.html.content.reasoning import reasoning, without_reasoning


@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning_content": "why"},
        {"reasoning": "why"},
        {"thinking": "why"},
        {"reasoning": {"summary": [{"type": "summary_text", "text": "why"}]}},
        {"reasoning_details": [{"type": "reasoning.text", "text": "why"}]},
        {"metadata": {"anthropic": {"content": [{"type": "thinking", "thinking": "why"}]}}},
        {"metadata": {"openai_responses": {"before": [{"type": "reasoning", "summary": [{"text": "why"}]}]}}},
    ],
)
def test_reasoning_is_found_where_models_leave_it(beside: dict[str, Any]) -> None:
    assert reasoning(AIMessage(content="so", **beside)) == "why"


def test_without_reasoning_there_is_none() -> None:
    assert reasoning(AIMessage(content="so", metadata={"reasoning_effort": "low", "deep": {"a": [1]}})) == ""
    assert reasoning(HumanMessage(content="so")) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>\nwhy\n</think>\n\nso", ("why", "so")),
        ("<thinking>why</thinking>so", ("why", "so")),
        ("<think>why", ("", "<think>why")),
        ("so <think>why</think>", ("", "so <think>why</think>")),
    ],
)
def test_reasoning_before_an_answer_is_taken_from_it(text: str, found: tuple[str, str]) -> None:
    assert without_reasoning(text) == found
