"""The goal, criterion by criterion: what code knows better it does not believe from a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stage import simple
from vivavoce.metrics.judged.goal import LEVELS
from vivavoce.metrics.judged.goal_reply import Asked, goal_reply
from vivavoce.metrics.result import MetricResult
from vivavoce.models.structured import class_schema
from vivavoce.penelope.simple_goal import SimpleGoalEval, SimpleGoalEvaluator
from vivavoce.testing import ScriptedModel

TALK = [
    {"role": "user", "content": "Where is my lamp?"},
    {"role": "assistant", "content": "It is on its way."},
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "On Monday."},
]


def judge_answer(answer: dict[str, Any]) -> MetricResult:
    return SimpleGoalEvaluator(ScriptedModel([answer])).evaluate(TALK, goal="Learn where the lamp is")


@pytest.mark.parametrize(
    ("met", "says", "expected"),
    [((True, True), True, True), ((True, False), True, False), ((False,), False, False), ((True,), False, False)],
)
def test_the_goal_is_reached_when_every_criterion_is_met_and_the_judge_agrees(
    met: tuple[bool, ...], says: bool, expected: bool
) -> None:
    result = judge_answer(simple(*met, goal_achieved=says, evidence="On Monday."))
    assert (result.name, result.score, result.passed) == ("simple_goal", expected, expected)
    assert result.details["disagreements"] == (["goal_achieved"] if says and not expected else [])


def test_silence_reaches_no_goal_and_no_judge_is_asked() -> None:
    model = ScriptedModel([])
    result = SimpleGoalEvaluator(model).evaluate([TALK[0], {"role": "assistant", "content": ""}], goal="Learn it")
    assert (result.state, result.score, result.value, result.passed) == ("scored", False, 0.0, False)
    assert result.reason == "the assistant says and does nothing in this conversation"


def test_turns_and_criteria_are_counted_in_code() -> None:
    result = judge_answer(simple(True, False, turn_count=7, all_criteria_met=True))
    assert (result.details["turn_count"], result.details["all_criteria_met"]) == (2, False)
    assert result.details["disagreements"] == ["turn_count", "all_criteria_met"]
    assert result.details["missing_criteria"] == ["c1"]
    assert result.reasoning is not None
    assert result.reasoning.startswith("Turn count: 2. ")


def test_findings_say_of_each_criterion_whether_it_is_met_and_by_which_words() -> None:
    answer = simple(True, False)
    answer["criteria_evaluations"][0]["evidence"] = "It is on its way."
    answer["criteria_evaluations"][1]["evidence"] = "It never comes."
    result = judge_answer(answer)
    assert result.details["findings"] == ["[MET] c0: It is on its way.", "[NOT MET] c1: It never comes."]
    assert [(quote.text, quote.verified) for quote in result.evidence] == [
        ("It is on its way.", True),
        ("It never comes.", False),
    ]


@pytest.mark.parametrize("wrong", [simple(), simple(True, confidence=2), {"goal_achieved": True}, simple(True, more=1)])
def test_an_answer_outside_the_schema_is_an_error_and_no_verdict(wrong: dict[str, Any]) -> None:
    result = judge_answer(wrong)
    assert (result.state, result.passed) == ("error", None)


def test_the_judge_is_told_whether_calls_can_be_seen() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "track", "arguments": "{}"}}
    acting = [TALK[0], {"role": "assistant", "content": "Wait.", "tool_calls": [call]}]
    for talk, expected in (
        (TALK, "its calls cannot be seen here"),
        (acting, "by a call, not by its words. It is not met if the result says"),
    ):
        model = ScriptedModel([simple(True)])
        SimpleGoalEvaluator(model).evaluate(talk, goal="Learn where the lamp is")
        assert expected in model.requests[0].messages[-1].text


def test_a_yes_that_depends_on_a_quote_that_nobody_said_is_asked_again_and_then_an_error() -> None:
    invented = simple(True)
    invented["criteria_evaluations"][0]["evidence"] = "It stands at your door."
    model = ScriptedModel([invented, invented])
    result = SimpleGoalEvaluator(model).evaluate(TALK, goal="Learn where the lamp is")
    assert (result.state, result.passed, len(model.requests)) == ("error", None, 2)
    assert result.failure is not None
    assert (result.failure.blame, result.failure.kind) == ("judge", "evidence")
    assert (
        SimpleGoalEvaluator(ScriptedModel([invented, simple(True, evidence="On Monday.")]))
        .evaluate(TALK, goal="g")
        .passed
        is True
    )


def test_a_no_stands_whatever_is_quoted_for_it() -> None:
    answer = simple(True, False)
    answer["criteria_evaluations"][0]["evidence"] = "It stands at your door."
    result = SimpleGoalEvaluator(ScriptedModel([answer, answer])).evaluate(TALK, goal="Learn where the lamp is")
    assert (result.state, result.passed) == ("scored", False)


def test_it_asks_for_less_than_the_question_that_it_takes_the_place_of() -> None:
    smaller, larger = class_schema(SimpleGoalEval), class_schema(goal_reply(Asked((), 0, True, LEVELS, level=False)))
    assert list(smaller["properties"]) == ["criteria_evaluations", "reasoning", "confidence"]
    assert len(smaller["properties"]) < len(larger["properties"])
    assert len(json.dumps(smaller)) < len(json.dumps(larger))
