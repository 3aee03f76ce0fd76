from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.turn_relevancy import TurnRelevancyMetric
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Hello!"},
    {"role": "assistant", "content": "Hello, how can I help?"},
    {"role": "user", "content": "Is anybody there?"},
    {"role": "user", "content": "When do you open?"},
    {"role": "assistant", "content": "Bananas are yellow."},
]


def verdict(answers: dict[str, str], *evidence: str) -> dict[str, Any]:
    checks = [{"item": item, "evidence": list(evidence), "answer": answer} for item, answer in answers.items()]
    return {"checks": checks, "reasoning": "So it is.", "confidence": 0.8}


@pytest.mark.parametrize(("last", "score", "passed"), [("yes", 1.0, True), ("partly", 0.75, True), ("no", 0.5, False)])
def test_the_score_is_the_share_of_the_answered_turns(last: str, score: float, passed: bool) -> None:
    judge = ScriptedModel([verdict({"turn 1": "yes", "turn 3": last}, "Bananas are yellow")])
    result = TurnRelevancyMetric(model=judge).evaluate(CONVERSATION)
    assert (result.score, result.passed) == (score, passed)
    assert [(one.turn, one.verified) for one in result.evidence] == [(2, True)]
    assert "turns 1, 3.\n" in judge.requests[0].messages[-1].text


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"turn 1": "yes"},
        {"turn 1": "yes", "turn 2": "yes", "turn 3": "yes"},
        {"turn 1": "yes", "turn 4": "yes"},
        {"turn 1": "yes", "turn 3": "irrelevant"},
    ],
)
def test_a_turn_left_out_or_invented_is_an_error(answers: dict[str, str]) -> None:
    result = TurnRelevancyMetric(model=ScriptedModel([verdict(answers)])).evaluate(CONVERSATION)
    assert (result.state, result.score, result.passed) == ("error", "error", None)


def test_turn_by_turn_the_turns_without_an_answer_cost_no_call() -> None:
    judge = ScriptedModel([verdict({"turn 1": "yes"}), verdict({"turn 3": "no"})])
    result = TurnRelevancyMetric(model=judge, scope="turn").evaluate(CONVERSATION)
    assert result.score == 0.5
    assert [(turn.turn, turn.raw) for turn in result.turns or ()] == [(0, 1.0), (2, 0.0)]
    asked = judge.requests[1].messages[-1].text
    assert "Task: judge only turn 3; earlier turns are context.\n" in asked
    assert "Answer for each of these once: turn 3.\n" in asked


def test_where_no_turn_is_answered_nothing_is_scored() -> None:
    greeted = [CONVERSATION[1], CONVERSATION[2]]
    judge = ScriptedModel([])
    result = TurnRelevancyMetric(model=judge).evaluate(greeted)
    assert (result.state, result.reasoning) == ("skipped", "the assistant answers in no turn of this conversation")
    assert judge.requests == []
