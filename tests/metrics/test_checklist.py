from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.checklist import ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.testing import ScriptedModel

ANSWERS = st.sampled_from(["yes", "partly", "no", "not_applicable"])
CONVERSATION = [
    {"role": "user", "content": "Hello there."},
    {"role": "assistant", "content": "Good day."},
    {"role": "user", "content": "And now?"},
    {"role": "assistant", "content": "Good night."},
]


class Manners(ChecklistMetric):
    """Asks about the given items, or lets the judge list them."""

    template: ClassVar[str] = "judged/context_retention.jinja"

    def __init__(self, model: ScriptedModel, questions: Mapping[str, str] | None = None, **options: Any) -> None:
        self.questions_asked = questions or {}
        super().__init__(MetricConfig(name="manners", threshold=0.5), model, **options)

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        del metric_input
        return self.questions_asked


def verdict(answers: Mapping[str, str], *evidence: str, confidence: float = 0.8) -> dict[str, Any]:
    checks = [{"item": item, "evidence": list(evidence), "answer": answer} for item, answer in answers.items()]
    return {"checks": checks, "reasoning": "So it is.", "confidence": confidence}


@given(st.dictionaries(st.text(max_size=9), ANSWERS, min_size=1, max_size=8), st.booleans())
def test_the_score_is_the_share_that_holds_of_what_applies(answers: dict[str, str], closed: bool) -> None:
    questions = dict.fromkeys(answers, "Is it so?") if closed else None
    result = Manners(ScriptedModel([verdict(answers, "good day")]), questions).evaluate(CONVERSATION)
    applying = [answer for answer in answers.values() if answer != "not_applicable"]
    if not applying:
        assert (result.state, result.score, result.passed) == ("skipped", None, None)
        return
    share = (applying.count("yes") + applying.count("partly") / 2) / len(applying)
    assert result.score == pytest.approx(share)
    assert result.passed == (share >= 0.5)


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ({"greets": "yes"}, "answer each of these items once: greets, thanks; got greets"),
        ({}, "got none"),
        ({"greets": "yes", "thanks": "no", "smiles": "yes"}, "checks.2.item: Input should be 'greets' or 'thanks'"),
        ({"greets": "yes", "Thanks": "no"}, "checks.1.item: Input should be 'greets' or 'thanks'"),
        ({"greets": "yes", "thanks": "perhaps"}, "checks.1.answer: Input should be 'yes', 'partly', 'no' or"),
        ({"greets": "yes", "thanks": ""}, "got ''"),
    ],
)
def test_a_list_that_is_not_the_one_asked_for_is_an_error(checks: dict[str, str], said: str) -> None:
    questions = {"greets": "Does it?", "thanks": "Does it?"}
    result = Manners(ScriptedModel([verdict(checks)]), questions).evaluate(CONVERSATION)
    assert (result.state, result.score) == ("error", "error")
    assert result.error is not None
    assert said in result.error.message


def test_an_item_answered_twice_is_an_error() -> None:
    twice = verdict({"greets": "yes"})
    twice["checks"] *= 2
    assert Manners(ScriptedModel([twice]), {"greets": "Does it?"}).evaluate(CONVERSATION).state == "error"


def test_each_check_keeps_its_own_evidence() -> None:
    result = Manners(ScriptedModel([verdict({"greets": "yes"}, "good day", "Good evening")])).evaluate(CONVERSATION)
    (check,) = result.findings
    assert (check.kind, check.what, check.verdict, check.state, check.turn) == ("check", "greets", "yes", "pass", 0)
    assert [(one.text, one.turn, one.verified) for one in check.evidence] == [
        ("good day", 0, True),
        ("Good evening", None, False),
    ]


def test_pieces_are_merged_by_their_turns_or_by_what_the_judge_lists() -> None:
    replies = [verdict({"a": "yes"}, "good day", confidence=0.9), verdict({"a": "no"}, confidence=0.4)]
    closed = Manners(ScriptedModel(replies), {"a": "Is it?"}, scope="turn").evaluate(CONVERSATION)
    assert (closed.score, closed.confidence) == (0.5, 0.4)
    assert [check.verdict for check in closed.findings] == ["yes", "no"]
    listed = [verdict({"a": "yes", "b": "yes", "c": "yes"}, "good day"), verdict({"d": "no"})]
    assert Manners(ScriptedModel(listed), scope="turn").evaluate(CONVERSATION).score == 0.75


def test_a_piece_to_which_nothing_applies_counts_for_nothing() -> None:
    replies = [verdict({"a": "not_applicable"}), verdict({"a": "partly"})]
    assert Manners(ScriptedModel(replies), {"a": "Is it?"}, scope="turn").evaluate(CONVERSATION).score == 0.5
    none = [verdict({"a": "not_applicable"})] * 2
    result = Manners(ScriptedModel(none), {"a": "Is it?"}, scope="turn").evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", Manners.nothing)
