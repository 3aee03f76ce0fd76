from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted
from vivavoce.messages import ConversationHistory
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import aevaluate_conversation
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput

CONVERSATION = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]


class Own(BaseMultiTurnMetric):
    """Measures with a function."""

    def __init__(
        self, measure: Callable[[MultiTurnEvaluationInput], MetricResult], name: str = "own", **config: Any
    ) -> None:
        super().__init__(MetricConfig.model_validate({"name": name, "maximum": None, **config}))
        self.measure = measure

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        return self.measure(evaluation_input)


class OwnAsync(Own):
    """Measures without holding anybody up."""

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        return self.measure(evaluation_input)


def count(multi_turn_evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
    return MetricResult(
        score=len(multi_turn_evaluation_input.messages),
        details={"goal": multi_turn_evaluation_input.goal, "reference": multi_turn_evaluation_input.reference},
    )


@pytest.mark.parametrize("kind", [Own, OwnAsync])
async def test_a_metric_of_your_own_measures_in_one_method_sync_or_async(kind: type[Own]) -> None:
    result = kind(count).evaluate(CONVERSATION, goal="Greet", reference="Greeted")
    assert (result.name, result.score) == ("own", 2)
    assert (result.details["goal"], result.details["reference"]) == ("Greet", "Greeted")
    history = ConversationHistory.from_dict_list(CONVERSATION)
    assert await kind(count).aevaluate(history, goal="Greet", reference="Greeted") == result


def saying(**result: Any) -> Callable[[MultiTurnEvaluationInput], MetricResult]:
    return lambda given: MetricResult(**result)


@pytest.mark.parametrize("kind", [Own, OwnAsync])
@pytest.mark.parametrize(
    ("score", "config", "value", "passed"),
    [
        (0.0, {"threshold": 0.5}, 0.0, False),
        (0.9, {"threshold": 0.5}, 0.9, True),
        (0.9, {}, 0.9, False),
        (1.0, {}, 1.0, True),
        (0.2, {"threshold": 0.5, "direction": "lower_is_better"}, 0.8, True),
        (4.0, {"minimum": 1.0, "maximum": 5.0, "threshold": 4.0}, 0.75, True),
        ("good", {"score_type": "categorical", "categories": ("bad", "good")}, 1.0, True),
        (7.0, {"maximum": None, "threshold": 5.0}, 1.0, True),
    ],
)
def test_the_configuration_of_a_metric_of_your_own_decides_what_passes(
    kind: type[Own], score: float | str, config: dict[str, Any], value: float, passed: bool
) -> None:
    ranged: dict[str, Any] = {"maximum": 1.0, **config}
    result = kind(saying(score=score), **ranged).evaluate(CONVERSATION)
    assert (result.score, result.value, result.passed) == (score, pytest.approx(value), passed)
    assert result.details["is_successful"] is passed


@pytest.mark.parametrize("said", [{"passed": True}, {"details": {"is_successful": True}}])
def test_what_a_metric_of_your_own_says_itself_of_passing_stands(said: dict[str, Any]) -> None:
    result = Own(saying(score=0.4, **said), maximum=1.0, threshold=0.5).evaluate(CONVERSATION)
    assert (result.value, result.passed) == (0.4, True)


def test_a_value_of_its_own_stands_and_the_threshold_still_decides() -> None:
    result = Own(saying(score=8.0, value=0.8), maximum=10.0, threshold=5.0).evaluate(CONVERSATION)
    assert (result.value, result.passed) == (0.8, True)


def test_a_score_outside_the_range_that_the_metric_states_is_an_error() -> None:
    result = Own(saying(score=7.0), maximum=1.0).evaluate(CONVERSATION)
    assert (result.state, result.passed) == ("error", None)
    assert result.reasoning == "own returned 7.0, which does not match its score_type"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"score": "error"}, "the metric gave no reason"),
        ({"score": "error", "details": {"error": "down"}}, "down"),
        ({"state": "skipped"}, "the metric does not apply"),
    ],
)
def test_what_has_no_score_always_has_a_reason(result: dict[str, Any], reason: str) -> None:
    assert Own(saying(**result)).evaluate(CONVERSATION).reasoning == reason


def boom(multi_turn_evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
    raise RuntimeError("boom")


@pytest.mark.parametrize("kind", [Own, OwnAsync])
def test_what_it_raises_becomes_an_error_that_is_no_score(kind: type[Own]) -> None:
    result = kind(boom).evaluate(CONVERSATION)
    assert (result.state, result.score, result.passed, result.value) == ("error", "error", None, None)
    assert result.error is not None
    assert (result.error.blame, result.error.kind, result.error.exception) == ("grader", "crash", "RuntimeError")
    expected: dict[str, Any] = {"is_successful": False, "confidence": 0.0, "exception_type": "RuntimeError"}
    assert {name: result.details[name] for name in expected} == expected
    assert "boom" in result.details["error"]


def test_a_limit_on_spending_is_raised() -> None:
    def spend(multi_turn_evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        raise BudgetExhausted("enough")

    with pytest.raises(BudgetExhausted):
        Own(spend).evaluate(CONVERSATION)


def test_a_malformed_conversation_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="message 1: needs a role"):
        Own(count).evaluate([CONVERSATION[0], {"content": "?"}])


def test_a_name_of_its_own_in_a_result_stays() -> None:
    def named(multi_turn_evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        return MetricResult(score=1.0, name="another")

    assert Own(named).evaluate(CONVERSATION).name == "another"
    assert Own(count, name="").name == "Own"


def test_a_metric_that_does_not_apply_says_why() -> None:
    skipped = Own(count).skipped("nothing to count")
    assert (skipped.state, skipped.score, skipped.reasoning, skipped.passed) == (
        "skipped",
        None,
        "nothing to count",
        None,
    )
    assert skipped.details["is_successful"] is None


@pytest.mark.parametrize("returned", [None, 0.5, {"score": 1.0}])
async def test_what_is_no_result_is_an_error_and_the_others_go_on(returned: Any) -> None:
    metric = Own(lambda given: returned)
    report = await aevaluate_conversation(CONVERSATION, [metric, TurnCountMetric()])
    assert report["own"].error is not None
    assert (report["own"].error.kind, report["own"].error.blame) == ("format", "grader")
    assert "not a MetricResult" in report["own"].error.message
    assert report["turn_count"].score == 1


def test_what_no_metric_knows_is_refused_and_not_left_out() -> None:
    with pytest.raises(ValueError, match="refrence: unknown field"):
        Own(count).evaluate(CONVERSATION, refrence="Greeted")  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValueError, match="must: "):
        Own(count).evaluate(CONVERSATION, must="greet")
