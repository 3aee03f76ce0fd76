from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.conversation_completeness import ConversationCompletenessMetric
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Cancel my order, and tell me when the shop opens."},
    {"role": "assistant", "content": "It opens at nine."},
]


def verdict(answers: dict[str, str], *evidence: str) -> dict[str, Any]:
    checks = [{"item": item, "evidence": list(evidence), "answer": answer} for item, answer in answers.items()]
    return {"checks": checks, "reasoning": "So it is.", "confidence": 0.8}


@pytest.mark.parametrize(
    ("answers", "score", "passed"),
    [
        ({"cancel": "no", "opening": "yes"}, 0.5, False),
        ({"cancel": "not_applicable", "opening": "yes"}, 1.0, True),
        ({"cancel": "no", "opening": "no"}, 0.0, False),
    ],
)
def test_the_score_is_the_share_of_the_wishes_that_are_satisfied(
    answers: dict[str, str], score: float, passed: bool
) -> None:
    judge = ScriptedModel([verdict(answers, "It opens at nine", "Cancelled.")])
    result = ConversationCompletenessMetric(model=judge).evaluate(CONVERSATION)
    assert (result.score, result.passed) == (score, passed)
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True), (None, False)]


def test_wishes_that_nobody_answers_are_judged_all_the_same() -> None:
    judge = ScriptedModel([verdict({"cancel": "no", "opening": "no"})])
    result = ConversationCompletenessMetric(model=judge).evaluate(CONVERSATION[:1])
    assert (result.score, result.passed) == (0.0, False)


def test_a_user_without_a_wish_gives_no_score() -> None:
    result = ConversationCompletenessMetric(model=ScriptedModel([verdict({})])).evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", "the user voices no wish that could be satisfied")


def test_an_answer_that_is_none_of_the_four_is_an_error() -> None:
    judge = ScriptedModel([verdict({"cancel": "done"})])
    assert ConversationCompletenessMetric(model=judge).evaluate(CONVERSATION).state == "error"
