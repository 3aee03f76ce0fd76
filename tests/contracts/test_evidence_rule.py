"""Every judged metric treats missing, blank, invented, and foreign evidence alike, by the rule that it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics import AspectCritic, PromptMetric, create_metric
from vivavoce.metrics.checklist import ChecklistMetric
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.judged.rubric_judge import RubricJudge
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.prompts import read_rubric
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.testing import ScriptedModel

RULE, QUESTION, ANSWER = "The refund was paid on Monday.", "Is my refund paid?", "I have paid back 35 euros."
TALK: list[Mapping[str, Any]] = [
    {"role": "system", "content": RULE},
    {"role": "user", "content": QUESTION},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": "refund", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "booking R-77 done", "tool_call_id": "a"},
    {"role": "assistant", "content": ANSWER, "retrieval_context": ["refunds take a day"]},
]
UNSUPPORTED: Mapping[str, list[str]] = {
    "missing": [],
    "blank": ["  ", ""],
    "an ellipsis": ["…"],
    "not applicable": ["n/a"],
    "invented": ["The money is in your account."],
    "of the system message": [RULE],
    "of no call": ["c7"],
}
END = {"reasoning": "So it is.", "confidence": 0.9}
Answer = Callable[[list[str]], dict[str, Any]]


def goal(kind: str) -> Answer:
    return lambda evidence: {
        "criteria": [{"outcome": "paid", "kind": kind, "evidence": evidence, "met": True}],
        "changes": [{"call": "c0", "asked": "pay", "rule": "", "verdict": "wanted"}],
        "breaches": [],
        **END,
    }


def happened(evidence: list[str]) -> dict[str, Any]:
    return {"rules": [{"rule": 1, "evidence": evidence, "happened": "yes"}], **END}


def checked(evidence: list[str]) -> dict[str, Any]:
    return {"checks": [{"item": "the refund", "evidence": evidence, "answer": "yes"}], **END}


def rated(**score: Any) -> Answer:
    return lambda evidence: {"evidence": evidence, **score, **END}


def with_threshold(threshold: float) -> Callable[[ScriptedModel], JudgedMetric]:
    score = {"kind": "numeric", "threshold": threshold}
    return lambda model: PromptMetric(model, name="own", prompt="Is it paid?", score=score)


def rubric(model: ScriptedModel) -> JudgedMetric:
    metric = RubricJudge(model, rubric=read_rubric("Is it paid? {{ submission }}", set(), "the rubric"))
    metric.is_decided_outside = True
    return metric


def named(name: str, **options: Any) -> Callable[[ScriptedModel], JudgedMetric]:
    def make(model: ScriptedModel) -> JudgedMetric:
        metric = create_metric(name, model=model, **options)
        assert isinstance(metric, JudgedMetric)
        return metric

    return make


CHANGE = "a change of a goal"
"""Its evidence is the call that made it, where all calls are shown."""

ACTS: Mapping[str, tuple[Callable[[ScriptedModel], JudgedMetric], Answer]] = {
    CHANGE: (named("goal_achievement"), goal("change")),
    "a fact of a goal": (named("goal_achievement"), goal("fact")),
    "a rule that must happen": (named("contract"), happened),
    "a simple goal": (
        SimpleGoalEvaluator,
        lambda evidence: {
            "criteria_evaluations": [{"criterion": "paid", "met": True, "evidence": (evidence or [""])[0]}],
            **END,
        },
    ),
    "an outcome": (
        named("agent_goal_accuracy"),
        lambda evidence: {"outcomes": [{"outcome": "paid", "evidence": evidence, "reached": True}], **END},
    ),
    "a wish": (named("conversation_completeness"), checked),
}
WORDS: Mapping[str, tuple[Callable[[ScriptedModel], JudgedMetric], Answer]] = {
    "a definition": (lambda model: AspectCritic(model, definition="It is paid."), rated(verdict=True)),
    "a level": (
        named("rubrics_score", rubrics={"score1_description": "bad", "score2_description": "good"}, threshold=2),
        rated(score=2),
    ),
    "a criterion": (named("simple_criteria", criteria="Is it paid?", threshold=3), rated(score=5)),
    "a prompt with a threshold": (with_threshold(0.5), rated(score=0.9)),
    "a label": (
        lambda model: PromptMetric(
            model,
            name="own",
            prompt="Is it paid?",
            score={"kind": "categorical", "categories": ["no", "yes"], "passing": ["yes"]},
        ),
        rated(label="yes"),
    ),
    "a rubric that a gate decides": (rubric, rated(score=1.0)),
    "a fact that is kept": (named("knowledge_retention"), checked),
    "a request": (
        named("topic_adherence", topics=["refunds"]),
        lambda evidence: {
            "requests": [{"turn": 1, "request": "refund", "evidence": evidence, "on_topic": True, "answered": True}],
            **END,
        },
    ),
    "a claim": (
        named("faithfulness"),
        lambda evidence: {
            "claims": [{"turn": 1, "claim": "paid", "evidence": evidence or [""], "support": "supported"}],
            **END,
        },
    ),
}
ALL = {**ACTS, **WORDS}


def measured(kind: str, *replies: dict[str, Any]) -> tuple[MetricResult, ScriptedModel]:
    model = ScriptedModel(list(replies))
    must = ["It pays back."] if kind == "a rule that must happen" else []
    result = ALL[kind][0](model).evaluate(TALK, goal="The user learns that the refund is paid", must=must)
    return result, model


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("kind", ALL)
def test_evidence_that_does_not_count_is_asked_for_once_more_and_then_an_error(kind: str, name: str) -> None:
    answer = ALL[kind][1]
    result, model = measured(kind, answer(UNSUPPORTED[name]), answer(UNSUPPORTED[name]))
    assert (result.state, result.passed, len(model.requests)) == ("error", None, 2)
    assert result.failure is not None
    assert (result.failure.blame, result.failure.kind) == ("judge", "evidence")


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("kind", ALL)
def test_the_second_request_says_what_is_wrong_and_its_answer_counts(kind: str, name: str) -> None:
    answer = ALL[kind][1]
    right = "c0" if kind == CHANGE else ANSWER
    result, model = measured(kind, answer(UNSUPPORTED[name]), answer([right]))
    assert (result.state, result.passed) == ("scored", True)
    first, second = model.requests
    assert list(second.messages[: len(first.messages)]) == list(first.messages)
    assert [message.role for message in second.messages[len(first.messages) :]] == ["assistant", "user"]
    quotes = [text for text in UNSUPPORTED[name] if text.strip()]
    assert all(text in second.messages[-1].text for text in quotes[:1])
    assert not result.has_unverified_evidence


@pytest.mark.parametrize("quote", [ANSWER, "booking R-77", "c0", "paid back … 35 euros"])
@pytest.mark.parametrize("kind", ALL)
def test_words_of_the_assistant_and_of_a_tool_count_everywhere(kind: str, quote: str) -> None:
    answer = ALL[kind][1]
    result, model = measured(kind, answer([quote]), answer(["c0"]))
    calls = 2 if kind == CHANGE and quote in (ANSWER, "paid back … 35 euros") else 1
    assert (result.state, result.passed, len(model.requests)) == ("scored", True, calls)


@pytest.mark.parametrize("kind", ALL)
def test_words_of_the_user_show_no_act(kind: str) -> None:
    answer = ALL[kind][1]([QUESTION])
    result, model = measured(kind, answer, answer)
    assert (result.state, len(model.requests)) == (("error", 2) if kind in ACTS else ("scored", 1))


@given(st.sampled_from(sorted(WORDS)), st.text(alphabet=" \t….,-–—'\"“”", max_size=6))
def test_marks_and_white_space_are_no_evidence(kind: str, text: str) -> None:
    answer = ALL[kind][1]([text])
    result, model = measured(kind, answer, answer)
    assert (result.state, len(model.requests)) == ("error", 2)


def test_a_verdict_that_something_does_not_hold_needs_no_evidence() -> None:
    model = ScriptedModel([rated(verdict=False)([])])
    result = AspectCritic(model, definition="It is paid.").evaluate(TALK)
    assert (result.state, result.passed, len(model.requests)) == ("scored", False, 1)


def test_that_something_is_absent_needs_no_evidence_where_that_is_declared() -> None:
    model = ScriptedModel([rated(verdict=True)([])])
    result = AspectCritic(model, definition="It never names a price.", absence=True).evaluate(TALK)
    assert (result.state, result.passed, len(model.requests)) == ("scored", True, 1)
    assert not result.has_unverified_evidence


def test_a_refusal_stands_without_a_quote_but_not_on_an_invented_one() -> None:
    metric = named("goal_achievement")
    for evidence, state in ((list[str](), "scored"), (["I never would."], "error")):
        answer = goal("refusal")(evidence)
        assert metric(ScriptedModel([answer, answer])).evaluate(TALK, goal="No discount").state == state


def test_a_number_that_nothing_decides_stands_and_is_counted() -> None:
    score = {"kind": "numeric"}
    model = ScriptedModel([rated(score=0.9)([])])
    result = PromptMetric(model, name="own", prompt="How good?", score=score).evaluate(TALK)
    assert (result.state, result.value, len(model.requests)) == ("scored", 0.9, 1)
    assert result.has_unverified_evidence


def test_each_vote_is_asked_again_for_itself() -> None:
    model = ScriptedModel(lambda request: rated(verdict=True)([ANSWER] if len(request.messages) > 2 else []))
    result = AspectCritic(model, definition="It is paid.", strictness=3).evaluate(TALK)
    assert (result.state, result.passed, len(model.requests)) == ("scored", True, 6)


def test_every_judged_metric_declares_its_rule() -> None:
    every = map(metrics.get, metrics.names())
    kinds = [kind for kind in every if issubclass(kind, JudgedMetric)]
    assert len(kinds) > 20
    for kind in kinds:
        rule = kind.evidence_rule
        assert isinstance(rule, EvidenceRule)
        demanded = [source for source in rule.findings.values() if source != "if_quoted"]
        assert bool(demanded or rule.verdict) != bool(rule.absence), kind.__name__
    lapses = [kind for kind in kinds if issubclass(kind, ChecklistMetric) and kind.evidence_rule.absence]
    assert len(lapses) == 7
