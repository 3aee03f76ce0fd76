from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.knowledge_retention import KnowledgeRetentionMetric
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "I am Bo, from Oslo, and I need two tickets."},
    {"role": "assistant", "content": "Two tickets, Bo. For which day?"},
    {"role": "user", "content": "Friday."},
    {"role": "assistant", "content": "And how many tickets do you need?"},
]


def verdict(answers: dict[str, str], *evidence: str) -> dict[str, Any]:
    checks = [{"item": item, "evidence": list(evidence), "answer": answer} for item, answer in answers.items()]
    return {"checks": checks, "reasoning": "So it is.", "confidence": 0.8}


@pytest.mark.parametrize(
    ("answers", "score", "passed"),
    [
        ({"name Bo": "yes", "two tickets": "no", "from Oslo": "not_applicable"}, 0.5, False),
        ({"name Bo": "yes", "two tickets": "partly"}, 0.75, True),
        ({"name Bo": "yes"}, 1.0, True),
    ],
)
def test_the_score_is_the_share_of_the_facts_that_are_kept(answers: dict[str, str], score: float, passed: bool) -> None:
    result = KnowledgeRetentionMetric(model=ScriptedModel([verdict(answers, "how many tickets")])).evaluate(
        CONVERSATION
    )
    assert (result.score, result.passed) == (score, passed)
    assert [(finding.what, finding.verdict) for finding in result.findings] == list(answers.items())


def test_the_question_that_forgot_is_found_in_its_turn() -> None:
    judge = ScriptedModel([verdict({"two tickets": "no"}, "I need two tickets", "how many tickets do you need?")])
    result = KnowledgeRetentionMetric(model=judge).evaluate(CONVERSATION)
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True), (1, True)]


@pytest.mark.parametrize("answers", [{}, {"from Oslo": "not_applicable"}])
def test_a_user_who_told_nothing_that_mattered_gives_no_score(answers: dict[str, str]) -> None:
    result = KnowledgeRetentionMetric(model=ScriptedModel([verdict(answers, "how many tickets")])).evaluate(
        CONVERSATION
    )
    assert (result.state, result.score, result.passed) == ("skipped", None, None)
    assert result.reasoning == "the user told no fact that anything later depends on"


def test_a_fact_weighs_the_same_in_whichever_turn_it_is_judged() -> None:
    judge = ScriptedModel([verdict({"a": "yes", "b": "yes", "c": "yes"}, "two tickets"), verdict({"d": "no"})])
    result = KnowledgeRetentionMetric(model=judge, scope="turn").evaluate(CONVERSATION)
    assert result.score == 0.75
    assert [turn.raw for turn in result.turns or ()] == [1.0, 0.0]


def test_an_answer_that_is_none_of_the_four_is_an_error() -> None:
    result = KnowledgeRetentionMetric(model=ScriptedModel([verdict({"name Bo": "forgotten"})])).evaluate(CONVERSATION)
    assert (result.state, result.score) == ("error", "error")
