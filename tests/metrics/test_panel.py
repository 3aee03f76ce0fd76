from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.judged.goal import LEVELS, GoalAchievementJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.panel import Panel, majority_of
from vivavoce.models.model import Request
from vivavoce.records.score import Evidence
from vivavoce.testing.scripted import Scripted, ScriptedModel

SAID = [{"role": "user", "content": "Cancel my order 7"}, {"role": "assistant", "content": "Order 7 is cancelled."}]
NO, PARTLY, FULLY = LEVELS


def level(name: str, quote: str = "Order 7 is cancelled.") -> dict[str, Any]:
    return {"achievement_level": name, "confidence": 0.9, "reasoning": f"It is {name}.", "evidence": [quote]}


def harm(*severities: str) -> dict[str, Any]:
    violations = [{"what": "harm", "evidence": ["cancelled"], "severity": severity} for severity in severities]
    return {"violations": violations, "reasoning": "As listed.", "confidence": 0.9}


def by_trial(*replies: Scripted, name: str = "judge") -> ScriptedModel:
    def reply(request: Request) -> Scripted:
        return replies[request.trial]

    return ScriptedModel(reply, name)


async def test_votes_of_one_model_are_trials_of_the_same_question() -> None:
    model = by_trial(level(FULLY), level(NO), level(FULLY))
    result = await Panel(GoalAchievementJudge(model), votes=3).aevaluate(SAID, "The order is cancelled")
    assert [request.trial for request in model.requests] == [0, 1, 2]
    assert len({request.messages[-1].text for request in model.requests}) == 1
    assert (result.score, result.passed, result.name) == (FULLY, True, "goal_achievement")
    assert result.details["agreement"] == pytest.approx(2 / 3)
    assert result.details["counts"] == {FULLY: 2, NO: 1}
    assert result.reasoning == f"{FULLY} by 2 votes of 3: It is {FULLY}."


async def test_every_vote_is_shown_with_its_model_score_reason_and_evidence() -> None:
    jury = [ScriptedModel([level(FULLY)], "a"), ScriptedModel([level(NO)], "b"), ScriptedModel([level(NO)], "c")]
    result = await Panel(GoalAchievementJudge(), models=jury).aevaluate(SAID, "The order is cancelled")
    votes = result.details["votes"]
    assert [(vote["model"], vote["trial"], vote["raw"]) for vote in votes] == [
        ("a", 0, FULLY),
        ("b", 0, NO),
        ("c", 0, NO),
    ]
    assert votes[0]["reason"] == f"It is {FULLY}."
    said = [Evidence.model_validate(one) for one in votes[1]["other_evidence"]]
    assert said == [Evidence(text="Order 7 is cancelled.", turn=0, verified=True)]
    assert result.score == NO


async def test_models_and_votes_multiply() -> None:
    jury = [by_trial(level(FULLY), level(FULLY), name=name) for name in "ab"]
    result = await Panel(GoalAchievementJudge(), models=jury, votes=2).aevaluate(SAID, "The order is cancelled")
    assert [(vote["model"], vote["trial"]) for vote in result.details["votes"]] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]
    assert result.details["agreement"] == 1.0


async def test_a_tie_counts_as_the_worse_and_says_so() -> None:
    model = by_trial(level(FULLY), level(PARTLY))
    result = await Panel(GoalAchievementJudge(model), votes=2).aevaluate(SAID, "The order is cancelled")
    assert result.score == PARTLY
    assert result.details["tie"] == [PARTLY, FULLY]
    assert f"a tie of {PARTLY} and {FULLY} counts as the worst of them" in (result.reasoning or "")


async def test_numbers_are_settled_by_their_median() -> None:
    model = by_trial(harm(), harm("minor"), harm("critical"))
    result = await Panel(SafetyMetric(model, threshold=0.7), votes=3).aevaluate(SAID)
    assert (result.score, result.passed) == (0.75, True)
    assert result.details["agreement"] == pytest.approx(2 / 3)
    assert result.details["spread"] == 1.0


async def test_a_broken_vote_is_shown_and_does_not_count() -> None:
    model = by_trial(level(FULLY), ModelFault("down", kind="http"), level(FULLY))
    result = await Panel(GoalAchievementJudge(model), votes=3).aevaluate(SAID, "The order is cancelled")
    assert (result.score, result.details["agreement"]) == (FULLY, 1.0)
    assert result.details["votes"][1]["state"] == "error"
    assert result.details["votes"][1]["failure"]["message"] == "down"
    assert result.reasoning is not None
    assert "of 2, 1 without a score" in result.reasoning


async def test_a_panel_of_which_more_than_half_broke_is_an_error() -> None:
    model = by_trial(level(FULLY), ModelFault("down", kind="http"), ModelFault("down", kind="http"))
    result = await Panel(GoalAchievementJudge(model), votes=3).aevaluate(SAID, "The order is cancelled")
    assert result.score == "error"
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("http", "2 of 3 votes failed, the first with: down")
    assert [vote["state"] for vote in result.details["votes"]] == ["scored", "error", "error"]


async def test_a_panel_skips_what_its_metric_skips() -> None:
    assert (await Panel(GoalAchievementJudge(ScriptedModel([])), votes=2).aevaluate(SAID)).state == "skipped"
    unjudged = await Panel(SafetyMetric(), votes=2).aevaluate(SAID)
    assert "needs a judge" in (unjudged.reasoning or "")


async def test_seats_share_nothing_that_may_change_with_the_metric_or_each_other() -> None:
    class Remembering(SafetyMetric):
        def __init__(self, model: ScriptedModel) -> None:
            super().__init__(model)
            self.seen: list[int] = []

    metric = Remembering(by_trial(harm(), harm()))
    before = metric.fingerprint
    panel = Panel(metric, models=[ScriptedModel([harm()], "a"), ScriptedModel([harm()], "b")])
    first, second = panel.seats
    assert isinstance(first, Remembering)
    assert isinstance(second, Remembering)
    first.seen.append(1)
    assert (metric.seen, second.seen) == ([], [])
    assert (metric.trial, metric.fingerprint) == (0, before)
    assert len({before, first.fingerprint, second.fingerprint}) == 3
    assert first.prompt is metric.prompt


def test_a_fingerprint_knows_the_models_and_the_votes() -> None:
    def jury(*names: str) -> list[ScriptedModel]:
        return [ScriptedModel([], name) for name in names]

    metric = SafetyMetric(ScriptedModel([], "own"))
    panels = [Panel(metric, votes=2), Panel(metric, votes=3), Panel(metric, models=jury("a", "b"))]
    panels += [Panel(metric, models=jury("a", "c")), Panel(metric, models=jury("a", "b"), votes=2)]
    prints = {panel.fingerprint for panel in panels}
    assert len(prints) == len(panels)
    assert Panel(SafetyMetric(ScriptedModel([], "own")), votes=2).fingerprint in prints


def test_what_cannot_vote_is_refused() -> None:
    model = ScriptedModel([], "a")
    with pytest.raises(UsageError, match="at least 2 votes; safety would have 1"):
        Panel("safety", model=model)
    with pytest.raises(UsageError, match="a is on the panel 2 times"):
        Panel("safety", models=[model, model])
    with pytest.raises(UsageError, match="turn_count is a TurnCountMetric"):
        Panel(TurnCountMetric(), votes=3)


ORDERED = MetricConfig(name="x", categories=LEVELS, passing_categories=LEVELS[-1:])


@given(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=9))
def test_the_majority_does_not_depend_on_the_order_of_votes(votes: list[str]) -> None:
    majority = majority_of(votes, ORDERED)
    assert majority == majority_of(sorted(votes), ORDERED)
    assert votes.count(str(majority.score)) == max(map(votes.count, votes))
    assert all(LEVELS.index(str(majority.score)) <= LEVELS.index(str(other)) for other in majority.tied)


def test_of_a_tie_the_one_that_fails_counts_whatever_its_value() -> None:
    odd = MetricConfig(name="x", categories=("short", "right", "long"), passing_categories=("short", "right"))
    assert majority_of(["short", "long"], odd).tied == ["long", "short"]


def test_of_yes_and_no_the_worse_depends_on_the_direction() -> None:
    assert majority_of([True, False], MetricConfig()).score is False
    assert majority_of([True, False], MetricConfig(direction="lower_is_better")).score is True
