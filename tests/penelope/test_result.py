"""The result of a test: its numbers, and JSON both ways."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vivavoce.messages import SystemMessage
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.judging import CONTRACT, GOAL
from vivavoce.penelope.result import TestResult, dump_test, read_test
from vivavoce.records.score import Usage
from vivavoce.records.trajectory import Criterion, TestStatus, Trajectory

from .states import BEGAN, DOWN, state, turn

GOAL_MET = MetricResult(name=GOAL, score="fully_achieved", value=1.0, passed=True, confidence=0.2, reasoning="Done.")
BROKEN = MetricResult(name="broken", score="error", state="error", error=DOWN)
SKIPPED = MetricResult(name="skipped", score=None, state="skipped")


def build_result(name: str, value: float | None, confidence: float | None = None, passed: bool = True) -> MetricResult:
    return MetricResult(name=name, score=value or 7.0, value=value, passed=passed, confidence=confidence)


def result(*evaluation: MetricResult, **more: Any) -> TestResult:
    about = state(("Hi", "Hello"), turn("Well?", None, number=2))
    return TestResult(
        status=TestStatus.SUCCESS,
        goal_achieved=True,
        context=about.context,
        history=about.turns,
        evaluation={metric_result.name or "": metric_result for metric_result in evaluation},
        **more,
    )


def test_the_quality_score_is_the_mean_of_values_and_never_of_confidence() -> None:
    test_result = result(GOAL_MET, build_result("a", 0.5, 0.9), build_result("b", 1.0), BROKEN, SKIPPED)
    assert test_result.get_quality_score() == 0.75
    assert test_result.get_mean_confidence() == pytest.approx(0.7)


def test_a_metric_without_an_upper_end_has_no_place_in_the_mean() -> None:
    assert result(build_result("words", None), build_result("a", 0.5)).get_quality_score() == 0.5


def test_where_no_quality_was_scored_the_default_stands() -> None:
    contract = build_result(CONTRACT, 0.0)
    unscored = result(GOAL_MET, contract, BROKEN)
    assert (unscored.get_quality_score(), unscored.get_quality_score(default=0.0)) == (None, None)
    assert (result().get_quality_score(), result().get_quality_score(default=0.0)) == (1.0, 0.0)
    for test_result in (result(), unscored):
        assert (test_result.get_mean_confidence(), test_result.get_mean_confidence(default=0.3)) == (1.0, 0.3)


@pytest.mark.parametrize(
    ("evaluation", "passed"),
    [
        ([], False),
        ([GOAL_MET], True),
        ([GOAL_MET, build_result("a", 0.1, passed=False)], False),
        ([GOAL_MET, BROKEN], False),
        ([GOAL_MET, SKIPPED], False),
    ],
)
def test_all_metrics_passed_only_where_each_did(evaluation: list[MetricResult], passed: bool) -> None:
    assert result(*evaluation).all_metrics_passed() is passed


def test_a_metric_is_found_by_its_name() -> None:
    assert result(GOAL_MET).get_metric_result(GOAL) == GOAL_MET
    assert result(GOAL_MET).get_metric_result("other") is None
    assert (result(GOAL_MET).goal_reasoning, result().goal_reasoning) == ("Done.", "")


def test_turns_times_and_costs_are_counted() -> None:
    used = {"tester": Usage(calls=2, cost=0.5), "judge": Usage(calls=1, cost=0.25)}
    test_result = result(usage=used, start_time=BEGAN, end_time=BEGAN + timedelta(seconds=3))
    assert (test_result.turns_used, test_result.cost, test_result.duration_seconds) == (2, 0.75, 3.0)
    assert (result().cost, result().duration_seconds) == (None, None)


def test_the_conversation_is_what_was_said() -> None:
    messages = result(opening=[SystemMessage(content="Be kind.")]).conversation.messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]


def test_a_result_is_the_same_after_json() -> None:
    test_result = result(
        GOAL_MET, BROKEN, blame="target", failure=DOWN, metadata={"counts": {"a": 1}}, start_time=BEGAN
    )
    test_result = test_result.model_copy(update={"discarded": [result(GOAL_MET)]})
    assert TestResult.model_validate_json(test_result.model_dump_json()) == test_result
    assert TestResult.model_validate(json.loads(json.dumps(test_result.model_dump(mode="json")))) == test_result


def test_a_test_comes_back_from_what_its_trajectory_holds() -> None:
    criteria = [Criterion(text=f"o{met}", must=True, met=met) for met in (True, False, None)]
    opening = [SystemMessage(content="Be kind.")]
    found = result(GOAL_MET, opening=opening, end_time=datetime.now(UTC), criteria=criteria)
    found = found.model_copy(update={"discarded": [result()]})
    exchanges = [turn.exchange for turn in found.history]
    test = dump_test(found)
    assert (test.opening, [turn.exchange for turn in test.history]) == ([], [None] * len(exchanges))
    talk = Trajectory(opening=found.opening, turns=exchanges, test=test)
    again = Trajectory.model_validate_json(talk.model_dump_json())
    assert again.test is not None
    assert read_test(again.test, again) == found
