"""Second opinions: only where the first judge says fail, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.judged.goal import LEVELS, GoalAchievementJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.panel import Confirmed, VoteRule
from vivavoce.metrics.result import MetricResult
from vivavoce.models.model import Request
from vivavoce.testing.scripted import Scripted, ScriptedModel

SAID = [{"role": "user", "content": "Cancel my order 7"}, {"role": "assistant", "content": "Order 7 is cancelled."}]
NO, PARTLY, FULLY = LEVELS
DOWN = ModelFault("the judge is down", kind="connect")


def level(name: str) -> dict[str, Any]:
    return {"achievement_level": name, "confidence": 0.9, "reasoning": f"It is {name}.", "evidence": []}


def voting(*replies: Scripted) -> ScriptedModel:
    def reply(request: Request) -> Scripted:
        return replies[request.trial - 1]

    return ScriptedModel(reply, "second")


async def opinion(
    first: Scripted, *others: Scripted, rule: VoteRule = "majority"
) -> tuple[MetricResult, ScriptedModel]:
    second = voting(*others)
    metric = Confirmed(GoalAchievementJudge(ScriptedModel([first], "first")), second, votes=len(others), rule=rule)
    return await metric.aevaluate(SAID, "The order is cancelled"), second


async def test_what_passes_costs_nothing_more() -> None:
    result, second = await opinion(level(FULLY), level(NO), level(NO))
    assert (result.passed, result.score, second.requests) == (True, FULLY, [])
    assert "opinions" not in result.extra


@pytest.mark.parametrize(
    ("rule", "others", "passed", "said"),
    [
        ("majority", [FULLY, FULLY], True, "the failure does not stand, 1 of 3 opinions say fail: It is "),
        ("majority", [FULLY, NO], False, "the failure stands, 2 of 3 opinions say fail: It is "),
        ("majority", [FULLY], False, "the failure stands, 1 of 2 opinions say fail"),  # a tie counts as the worse
        ("all", [FULLY, NO], True, "the failure does not stand, 2 of 3 opinions say fail"),
        ("all", [NO, NO], False, "the failure stands, 3 of 3 opinions say fail"),
    ],
)
async def test_the_rule_says_when_a_failure_stands(rule: VoteRule, others: list[str], passed: bool, said: str) -> None:
    result, second = await opinion(level(NO), *map(level, others), rule=rule)
    assert (result.passed, result.score) == (passed, FULLY if passed else NO)
    assert (result.reason or "").startswith(said)
    assert [request.trial for request in second.requests] == list(range(1, len(others) + 1))


async def test_every_opinion_is_kept() -> None:
    result, _ = await opinion(level(NO), level(FULLY), level(FULLY))
    assert [(one["model"], one["raw"]) for one in result.extra["opinions"]] == [
        ("first", NO),
        ("second", FULLY),
        ("second", FULLY),
    ]
    verdicts = [finding.verdict for finding in result.findings if finding.kind == "metric"]
    assert verdicts == [NO, FULLY, FULLY]
    assert result.name == "goal_achievement"


@pytest.mark.parametrize(
    ("rule", "others", "state", "passed"),
    [
        ("majority", [DOWN, level(NO)], "scored", False),  # the lost one could not save it
        ("majority", [DOWN, level(FULLY)], "error", None),
        ("majority", [DOWN, DOWN], "error", None),
        ("all", [DOWN, level(FULLY)], "scored", True),
        ("all", [DOWN, level(NO)], "error", None),
    ],
)
async def test_a_lost_opinion_is_an_error_where_it_could_change_the_verdict(
    rule: VoteRule, others: list[Scripted], state: str, passed: bool | None
) -> None:
    result, _ = await opinion(level(NO), *others, rule=rule)
    assert (result.state, result.passed) == (state, passed)
    if state == "error":
        assert result.failure is not None
        assert (result.failure.blame, "second opinions failed" in result.failure.message) == ("judge", True)
        assert len(result.extra["opinions"]) == 3


async def test_an_error_of_the_first_judge_stays_one() -> None:
    result, second = await opinion(DOWN, level(FULLY))
    assert (result.state, second.requests) == ("error", [])


def test_the_fingerprint_is_that_of_the_whole_procedure() -> None:
    plain = SafetyMetric(ScriptedModel([], "first"))

    def print_of(model: str = "second", **more: Any) -> str:
        return Confirmed(plain, ScriptedModel([], model), **more).fingerprint

    prints = [plain.fingerprint, print_of(), print_of("third"), print_of(votes=3), print_of(rule="all")]
    prints += [print_of(passing=0.5), print_of(by_threshold=True)]
    assert len(set(prints)) == len(prints)
    assert print_of() == print_of()


def test_at_least_one_vote() -> None:
    with pytest.raises(UsageError, match="votes must be at least 1, got 0"):
        Confirmed(SafetyMetric(ScriptedModel([], "a")), ScriptedModel([], "b"), votes=0)
