from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.config import Direction, MetricConfig
from vivavoce.metrics.violations import HARM, ViolationMetric
from vivavoce.testing import ScriptedModel

SEVERITIES = st.lists(st.sampled_from(sorted(HARM)), max_size=5)
CONVERSATION = [
    {"role": "user", "content": "Hello there."},
    {"role": "assistant", "content": "Go away."},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": "Because I say so."},
]


class Rudeness(ViolationMetric):
    """Lists what is rude."""

    template: ClassVar[str] = "judged/safety.jinja"

    def __init__(self, model: ScriptedModel, direction: Direction = "higher_is_better", **options: Any) -> None:
        super().__init__(MetricConfig(name="rudeness", direction=direction, threshold=0.5), model, **options)


def verdict(severities: list[str], evidence: str = "Go away.") -> dict[str, Any]:
    found = [{"what": "rude", "evidence": [evidence], "severity": severity} for severity in severities]
    return {"violations": found, "reasoning": "So it is.", "confidence": 0.8}


@given(SEVERITIES)
def test_the_score_is_what_the_worst_leaves_however_many_there_are(severities: list[str]) -> None:
    harm = max((HARM[severity] for severity in severities), default=0.0)
    good = Rudeness(ScriptedModel([verdict(severities)])).evaluate(CONVERSATION)
    bad = Rudeness(ScriptedModel([verdict(severities)]), "lower_is_better").evaluate(CONVERSATION)
    assert (good.score, bad.score) == (1 - harm, harm)
    assert good.value == bad.value
    assert good.passed == bad.passed == (harm <= 0.5)


@given(SEVERITIES, SEVERITIES)
def test_of_several_pieces_the_worst_decides(first: list[str], second: list[str]) -> None:
    replies = [verdict(first), verdict(second, "Because I say so.")]
    good = Rudeness(ScriptedModel(replies), scope="turn").evaluate(CONVERSATION)
    bad = Rudeness(ScriptedModel(replies), "lower_is_better", scope="turn").evaluate(CONVERSATION)
    harm = max((HARM[one] for one in [*first, *second]), default=0.0)
    assert (good.score, bad.score) == (1 - harm, harm)
    assert len(good.findings) == len(first) + len(second)


WRONG: list[Any] = [
    None,
    "none",
    [{"what": "rude", "severity": "minor"}],
    [{"what": "rude", "evidence": [], "severity": "minor"}],
    [{"what": "rude", "evidence": ["Go away."], "severity": "awful"}],
    [{"what": "rude", "evidence": ["Go away."], "severity": "minor", "score": 0}],
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_list_that_is_none_is_an_error(wrong: Any) -> None:
    result = Rudeness(ScriptedModel([{**verdict([]), "violations": wrong}])).evaluate(CONVERSATION)
    assert (result.state, result.score, result.passed) == ("error", "error", None)


def test_a_violation_keeps_its_own_evidence() -> None:
    result = Rudeness(ScriptedModel([verdict(["major"], "because I say so")])).evaluate(CONVERSATION)
    (violation,) = result.findings
    assert (violation.what, violation.verdict, violation.turn) == ("rude", "major", 1)
    assert [(one.turn, one.verified) for one in violation.evidence] == [(1, True)]


def test_an_invented_violation_that_decides_is_asked_for_again_and_then_an_error() -> None:
    invented = verdict(["critical"], "You are an idiot.")
    judge = ScriptedModel([invented, invented])
    assert Rudeness(judge).evaluate(CONVERSATION).state == "error"
    assert len(judge.requests) == 2


def test_an_invented_violation_may_be_withdrawn() -> None:
    judge = ScriptedModel([verdict(["critical"], "You are an idiot."), verdict([])])
    assert Rudeness(judge).evaluate(CONVERSATION).score == 1


def test_an_invented_violation_that_decides_nothing_stands() -> None:
    invented = verdict(["minor"], "You are an idiot.")
    assert Rudeness(ScriptedModel([invented, invented])).evaluate(CONVERSATION).score == 0.75
