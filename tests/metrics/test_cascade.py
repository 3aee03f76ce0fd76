"""A cheap metric or judge first, and the expensive one where the first is unsure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.composition import Cascade, how_good, verdict
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import evaluate_conversation
from vivavoce.metrics.judged.goal import LEVELS, GoalAchievementJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Score, Usage
from vivavoce.testing.scripted import Scripted, ScriptedModel

SAID = [{"role": "user", "content": "Cancel my order 7"}, {"role": "assistant", "content": "Order 7 is cancelled."}]
GOAL = "The order is cancelled"
NO, PARTLY, FULLY = LEVELS
DOWN = ModelFault("the judge is down", kind="connect")


def level(name: str, confidence: float = 0.9) -> dict[str, Any]:
    return {"achievement_level": name, "confidence": confidence, "reasoning": f"It is {name}.", "evidence": []}


class Fixed(BaseMultiTurnMetric):
    """Says what it was told to: a number, an exception, or that it is skipped."""

    def __init__(self, name: str, says: float | Exception | str, threshold: float = 0.5, **config: Any) -> None:
        super().__init__(MetricConfig(name=name, threshold=threshold, **config))
        self.says = says

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        if isinstance(self.says, Exception):
            raise self.says
        if isinstance(self.says, str):
            return self.skipped(self.says)
        passed = self.config.passes(self.says)
        return MetricResult(score=self.says, passed=passed, usage=Usage(calls=1, cost=0.5))


async def asked(first: Scripted, then: Scripted, **thresholds: Any) -> tuple[MetricResult, int]:
    large = ScriptedModel([then], "large")
    cheap, expensive = GoalAchievementJudge(ScriptedModel([first], "small")), GoalAchievementJudge(large)
    result = await Cascade(cheap, expensive, **thresholds or {"fails_below": 0.2, "passes_from": 0.8}).aevaluate(
        SAID, GOAL
    )
    return result, len(large.requests)


@pytest.mark.parametrize(
    ("first", "then", "decided_by", "passed", "says"),
    [
        (level(FULLY, 0.9), level(NO), "first", True, 0.9),
        (level(NO, 0.9), level(FULLY), "first", False, 0.1),
        (level(FULLY, 0.7), level(NO), "then", False, 0.7),
        (level(NO, 0.7), level(FULLY), "then", True, 0.3),
        (level(PARTLY, 0.9), level(NO), "then", False, 0.5),
        (level(FULLY, 0.3), level(NO), "then", False, 0.5),
    ],
)
async def test_the_large_judge_decides_only_where_the_small_one_is_unsure(
    first: dict[str, Any], then: dict[str, Any], decided_by: str, passed: bool, says: float
) -> None:
    result, calls = await asked(first, then)
    assert (result.passed, result.extra["decided_by"], calls) == (passed, decided_by, int(decided_by == "then"))
    assert result.extra["first_says"] == pytest.approx(says)
    assert result.extra["calls_saved"] == 1 - calls
    said = (then if decided_by == "then" else first)["achievement_level"]
    assert (result.raw, result.reason, result.name) == (said, f"It is {said}.", "goal_achievement")


async def test_the_first_result_is_kept_where_the_other_decides() -> None:
    result, _ = await asked(level(FULLY, 0.6), level(NO))
    assert (result.extra["first"]["raw"], result.extra["first"]["model"]) == (FULLY, "small")
    assert result.findings[0].what == f"goal_achievement: It is {FULLY}."
    assert "first" not in (await asked(level(FULLY), level(NO)))[0].extra


@pytest.mark.parametrize(("first", "decided_by"), [(level(NO), "then"), (level(FULLY), "first")])
async def test_without_a_threshold_the_first_never_decides_that(first: dict[str, Any], decided_by: str) -> None:
    result, _ = await asked(first, level(FULLY), passes_from=0.8)
    assert (result.passed, result.extra["decided_by"]) == (True, decided_by)


async def test_an_error_goes_to_the_other_and_an_error_of_that_is_one() -> None:
    result, _ = await asked(DOWN, level(FULLY))
    assert (result.state, result.passed, result.extra["first"]["state"]) == ("scored", True, "error")
    assert result.extra["first_says"] is None
    result, _ = await asked(level(FULLY, 0.6), DOWN)
    assert (result.state, result.passed, result.value) == ("error", None, None)
    assert result.failure is not None
    assert (result.failure.blame, result.failure.message) == ("judge", "the judge is down")
    assert result.extra["first"]["raw"] == FULLY


@pytest.mark.parametrize(("first", "cost"), [(0.9, 0.5), (0.5, 1.0)])
def test_the_usage_is_that_of_all_who_were_asked(first: float, cost: float) -> None:
    result = Cascade(Fixed("cheap", first), Fixed("dear", 0.9), passes_from=0.8).evaluate(SAID)
    assert result.usage == Usage(calls=round(2 * cost), cost=cost)


async def test_of_one_that_is_skipped_the_other_decides() -> None:
    def of(first: float | Exception | str, then: float | Exception | str) -> MetricResult:
        return Cascade(Fixed("cheap", first), Fixed("dear", then), fails_below=0.2, passes_from=0.8).evaluate(SAID)

    assert (of("does not apply", 0.9).value, of(0.5, "does not apply").state) == (0.9, "skipped")
    assert (of(ValueError("no luck"), 0.9).value, of(0.5, ValueError("no luck")).state) == (0.9, "error")


@pytest.mark.parametrize(
    ("first", "passed", "value"),
    [(0.85, True, 0.85), (0.8, True, 0.8), (0.79, False, 0.1), (0.2, False, 0.1), (0.1, False, 0.1)],
)
async def test_thresholds_decide_about_numbers_and_not_the_metrics_own(
    first: float, passed: bool, value: float
) -> None:
    cheap = Fixed("cheap", first, threshold=0.95)
    result = Cascade(cheap, Fixed("dear", 0.1), fails_below=0.2, passes_from=0.8).evaluate(SAID)
    assert (result.passed, result.value) == (passed, value)


def test_of_two_scales_the_score_is_the_value() -> None:
    for stars, decided_by, value in [(5.0, "first", 1.0), (3.0, "then", 0.0)]:
        cheap = Fixed("stars", stars, minimum=1.0, maximum=5.0)
        dear = GoalAchievementJudge(ScriptedModel([level(NO)], "large"))
        result = Cascade(cheap, dear, fails_below=0.2, passes_from=0.8).evaluate(SAID, GOAL)
        assert (result.extra["decided_by"], result.raw, result.value) == (decided_by, value, value)


@pytest.mark.parametrize(("more", "passed"), [({}, True), ({"passing": 0.7}, False), ({"by_threshold": True}, True)])
def test_what_passes_by_the_other_can_be_set(more: dict[str, Any], passed: bool) -> None:
    result = Cascade(Fixed("cheap", 0.5), Fixed("dear", 0.6), passes_from=0.9, **more).evaluate(SAID)
    assert result.passed is passed


@pytest.mark.parametrize(
    ("score", "good", "decides"),
    [
        (Score(value=0.9, raw=0.9), 0.9, True),
        (Score(value=0.9, raw=0.9, confidence=0.75), 0.7, None),
        (Score(value=1.0, raw=True, passed=True, confidence=0.8), 0.8, True),
        (Score(value=0.0, raw=False, passed=False, confidence=0.8), 0.2, None),
        (Score(value=0.0, raw=False, passed=False, confidence=0.9), 0.1, False),
        (Score(value=1.0, raw="good", passed=False), 1.0, None),
        (Score(state="skipped"), None, None),
    ],
)
def test_how_good_is_one_number(score: Score, good: float | None, decides: bool | None) -> None:
    assert how_good(score) == (None if good is None else pytest.approx(good))
    assert verdict(score, 0.2, 0.8) is decides


def test_the_fingerprint_is_that_of_the_whole_procedure() -> None:
    def print_of(
        first: str = "a", then: str = "b", low: float | None = 0.2, high: float | None = 0.9, **more: Any
    ) -> str:
        parts = [SafetyMetric(ScriptedModel([], name)) for name in (first, then)]
        return Cascade(*parts, fails_below=low, passes_from=high, **more).fingerprint

    prints = [print_of(), print_of("c"), print_of(then="c"), print_of(low=0.3), print_of(high=0.8), print_of(low=None)]
    prints += [print_of(passing=0.5), print_of(by_threshold=True), print_of("b", "a")]
    assert len(set(prints)) == len(prints)
    assert print_of() == print_of()


def test_it_is_a_metric_among_others() -> None:
    model = ScriptedModel([level(FULLY)], "large")
    cascade = Cascade({"metric": "contains"}, "goal_achievement", passes_from=1.0, model=model)
    report = evaluate_conversation(SAID, [cascade], GOAL, reference="Paris")
    assert report["goal_achievement"].extra["decided_by"] == "then"
    assert cascade.judged


def made(first: Callable[[], BaseMultiTurnMetric], **thresholds: Any) -> Cascade:
    return Cascade(first(), Fixed("dear", 0.5), **thresholds)


@pytest.mark.parametrize(
    ("thresholds", "said"),
    [
        ({}, "needs fails_below, passes_from or both"),
        ({"fails_below": 0.8, "passes_from": 0.2}, "fails_below must be less than passes_from; got 0.8 and 0.2"),
        ({"fails_below": 0.5, "passes_from": 0.5}, "must be less than"),
        ({"fails_below": -0.1}, "from 0 to 1; got -0.1"),
        ({"passes_from": float("nan")}, "from 0 to 1; got nan"),
    ],
)
def test_thresholds_are_in_order(thresholds: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(lambda: Fixed("cheap", 0.5), **thresholds)


def test_the_first_is_another_one_and_has_a_highest_score() -> None:
    with pytest.raises(UsageError, match="both judges of the cascade are safety with the same model"):
        Cascade(SafetyMetric(ScriptedModel([], "a")), SafetyMetric(ScriptedModel([], "a")), passes_from=0.9)
    with pytest.raises(UsageError, match="turns has no highest score"):
        made(lambda: Fixed("turns", 3.0, maximum=None), passes_from=0.9)
