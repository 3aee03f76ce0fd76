from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted, UsageError
from vivavoce.messages import ConversationHistory
from vivavoce.metrics.composition import AllOf, AnyOf, Chain, Composition, Weighted
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.judged.aspect_critic import AspectCritic
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.records.score import UNSUPPORTED, Usage
from vivavoce.testing.scripted import ScriptedModel

SAID = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
GIVEN = MultiTurnEvaluationInput(conversation_history=ConversationHistory.from_dict_list(SAID), goal="A greeting")
SAFE: dict[str, Any] = {"violations": [], "reasoning": "Nothing harmful.", "confidence": 0.8}


class Fixed(BaseMultiTurnMetric):
    """Says what it was told to: a number from 0 to 1, an exception, or that it is skipped."""

    def __init__(self, name: str, says: float | Exception | str, threshold: float | None = 0.5, **more: Any) -> None:
        super().__init__(MetricConfig(name=name, threshold=threshold, **more))
        self.says = says
        self.asked = 0

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        self.asked += 1
        if isinstance(self.says, Exception):
            raise self.says
        if isinstance(self.says, str):
            return self.skipped(self.says)
        passed = self.config.passes(self.says)
        return MetricResult(score=self.says, passed=passed, confidence=self.says, usage=Usage(calls=1, cost=0.5))


def good(name: str = "good") -> Fixed:
    return Fixed(name, 0.9)


def bad(name: str = "bad") -> Fixed:
    return Fixed(name, 0.1)


def broken() -> Fixed:
    return Fixed("broken", ValueError("no luck"))


def skipped(name: str = "skipped") -> Fixed:
    return Fixed(name, "does not apply")


def undecided() -> Fixed:
    return Fixed("undecided", 7.0, threshold=None, maximum=None)


@pytest.mark.parametrize("kind", [AllOf, Chain])
@pytest.mark.parametrize(
    ("parts", "state", "score"),
    [
        ([good(), good("too")], "scored", True),
        ([good(), bad()], "scored", False),
        ([bad(), broken()], "scored", False),
        ([good(), broken()], "error", "error"),
        ([good(), undecided()], "error", "error"),
        ([skipped(), good()], "scored", True),
        ([skipped(), skipped("too")], "skipped", None),
    ],
)
async def test_all_have_to_pass_and_one_that_fails_decides(
    kind: type[AllOf], parts: list[Fixed], state: str, score: object
) -> None:
    result = await kind(*parts).measured(GIVEN)
    assert (result.state, result.score) == (state, score)
    assert [part["name"] for part in result.details["parts"]] == [part.name for part in parts]


async def test_an_error_beside_a_failing_part_is_shown_though_it_does_not_count() -> None:
    result = await AllOf(broken(), bad()).measured(GIVEN)
    assert (result.score, result.passed) == (False, False)
    assert [part["state"] for part in result.details["parts"]] == ["error", "scored"]
    assert "no luck" in result.details["parts"][0]["failure"]["message"]
    assert [(finding.kind, finding.verdict, finding.state) for finding in result.findings] == [
        ("metric", "error", "skip"),
        ("metric", "0.1", "fail"),
    ]


@pytest.mark.parametrize(
    ("parts", "state", "score"),
    [
        ([bad(), good()], "scored", True),
        ([bad(), bad("too")], "scored", False),
        ([broken(), good()], "scored", True),
        ([broken(), bad()], "error", "error"),
        ([skipped(), bad()], "scored", False),
        ([skipped()], "skipped", None),
    ],
)
async def test_one_that_passes_decides_any_of(parts: list[Fixed], state: str, score: object) -> None:
    result = await AnyOf(*parts).measured(GIVEN)
    assert (result.state, result.score) == (state, score)


async def test_the_error_of_a_whole_names_the_part() -> None:
    result = await AllOf(good(), broken(), undecided()).measured(GIVEN)
    assert result.error is not None
    assert result.error.message.startswith("broken: ValueError: no luck; undecided: its score 7.0 neither passes")
    assert result.error.blame == "grader"


async def test_a_chain_does_not_ask_after_the_first_that_fails() -> None:
    last = good()
    result = await Chain(good("first"), bad(), last).measured(GIVEN)
    assert last.asked == 0
    assert result.passed is False
    assert result.details["parts"][2]["reason"] == "not asked, for bad did not pass"
    assert result.usage == Usage(calls=2, cost=1.0)


async def test_a_chain_does_not_ask_after_an_error() -> None:
    last = good()
    result = await Chain(broken(), last).measured(GIVEN)
    assert (result.state, last.asked) == ("error", 0)


async def test_usage_adds_up_and_the_least_sure_part_counts() -> None:
    result = await AllOf(good(), Fixed("fair", 0.6)).measured(GIVEN)
    assert result.usage == Usage(calls=2, cost=1.0)
    assert result.confidence == 0.6
    assert result.value == 1.0


async def test_parts_whose_order_does_not_matter_run_at_once() -> None:
    meeting = asyncio.Barrier(3)

    class Meeting(Fixed):
        async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            await meeting.wait()
            return MetricResult(score=1.0, passed=True)

    parts = [Meeting(name, 1.0) for name in ("one", "two", "three")]
    for whole in (AllOf(*parts), AnyOf(*parts), Weighted(dict.fromkeys(parts, 1.0))):
        async with asyncio.timeout(10):
            assert (await whole.measured(GIVEN)).state == "scored"


async def test_a_weighted_mean_is_of_values_where_one_is_best() -> None:
    harm = Fixed("harm", 0.25, direction="lower_is_better")
    stars = Fixed("stars", 5.0, minimum=1.0, maximum=5.0)
    result = await Weighted({harm: 3, stars: 1}, threshold=0.8).measured(GIVEN)
    assert result.score == pytest.approx((0.75 * 3 + 1.0) / 4)
    assert result.passed is True
    assert result.details["weights"] == {"harm": 3, "stars": 1}


async def test_a_weighted_mean_leaves_out_what_is_skipped_and_needs_the_rest() -> None:
    assert (await Weighted({good(): 1, skipped(): 9}).measured(GIVEN)).score == pytest.approx(0.9)
    assert (await Weighted({good(): 1, broken(): 1}).measured(GIVEN)).state == "error"
    assert (await Weighted({skipped(): 1}).measured(GIVEN)).state == "skipped"
    endless = await Weighted({Fixed("endless", 3.0, threshold=None, maximum=None): 1, good(): 1}).measured(GIVEN)
    assert endless.error is not None
    assert "endless: its score 3.0" in endless.error.message


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_a_weight_is_above_zero(weight: float) -> None:
    with pytest.raises(UsageError, match="a weight must be a number above 0; good has"):
        Weighted({good(): weight})


def test_compositions_are_metrics_that_can_be_composed() -> None:
    inner = AnyOf(bad(), good(), name="either")
    result = AllOf(inner, Fixed("fair", 0.6)).evaluate(SAID)
    assert result.score is True
    assert result.name == "all_of"
    assert result.details["parts"][0]["extra"]["parts"][1]["name"] == "good"


async def test_a_sync_evaluation_works_inside_a_running_loop() -> None:
    assert AllOf(good()).evaluate(SAID).score is True


def test_metrics_can_be_named() -> None:
    whole = AllOf("safety", "goal_achievement", model=ScriptedModel([SAFE]))
    assert [type(part) for part in whole.parts] == [SafetyMetric, GoalAchievementJudge]
    assert whole.judged
    assert not AllOf(good()).judged


def test_parts_have_names_of_their_own_and_there_is_at_least_one() -> None:
    with pytest.raises(UsageError, match="two metrics are called 'good'"):
        AllOf(good(), good())
    with pytest.raises(UsageError, match="give at least one"):
        AnyOf()


def test_a_fingerprint_changes_with_the_parts_the_kind_and_the_weights() -> None:
    def made(model: str = "m") -> Sequence[Composition]:
        safety, other = SafetyMetric(ScriptedModel([], name=model)), good()
        kinds: Sequence[Composition] = [
            AllOf(safety, other),
            AllOf(other, safety),
            AnyOf(safety, other),
            Weighted({safety: 1, other: 2}),
            Weighted({safety: 2, other: 2}),
        ]
        return kinds

    prints = [one.fingerprint for one in (*made(), *made("n"))]
    assert len(set(prints)) == len(prints)
    assert [one.fingerprint for one in made()] == prints[: len(prints) // 2]


def test_planned_calls_count_the_pieces_of_all_parts() -> None:
    long = GIVEN.model_copy(update={"conversation_history": ConversationHistory.from_dict_list(SAID * 3)})
    turns = SafetyMetric(ScriptedModel([]), scope="turn")
    assert AllOf(turns, GoalAchievementJudge(ScriptedModel([])), good()).planned_calls(Reading(long)) == 4
    assert SafetyMetric().planned_calls(Reading(long)) == 0


async def test_a_budget_that_is_used_up_ends_the_whole() -> None:
    model = ScriptedModel(lambda request: BudgetExhausted("no calls left"))
    with pytest.raises(BudgetExhausted):
        await AllOf(SafetyMetric(model)).measured(GIVEN)


async def test_evidence_of_what_decided_is_the_evidence_of_the_whole() -> None:
    violation = {"what": "rude", "evidence": ["Good day"], "severity": "critical"}
    model = ScriptedModel([{**SAFE, "violations": [violation]}])
    result = await AllOf(SafetyMetric(model), good()).measured(GIVEN)
    assert [(one.text, one.turn, one.verified) for one in result.evidence] == [("Good day", 0, True)]
    assert result.details["parts"][0]["findings"][0]["what"] == "rude"


def test_a_score_outside_the_range_of_its_metric_has_no_weight() -> None:
    result = Weighted({Fixed("seven", 7.0): 1.0, good(): 1.0}).evaluate(SAID)
    assert (result.state, result.score) == ("error", "error")


def test_each_vote_of_a_critic_is_a_call() -> None:
    critic = AspectCritic(ScriptedModel([]), definition="It is polite.", strictness=3)
    assert critic.planned_calls(Reading(GIVEN)) == 3


class Doubtful(Fixed):
    """Passes or fails on a claim whose evidence is not in the conversation."""

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        result = super().evaluate_conversation(evaluation_input)
        return result.model_copy(update={"extra": {UNSUPPORTED: ["a claim"]}})


@pytest.mark.parametrize(
    ("composition", "rests_on_it"),
    [
        (AllOf(Doubtful("doubtful", 0.9), good()), True),
        (AllOf(Doubtful("doubtful", 0.9), bad()), False),
        (AnyOf(Doubtful("doubtful", 0.1), good()), False),
        (AnyOf(Doubtful("doubtful", 0.1), bad()), True),
        (Weighted({Doubtful("doubtful", 0.9): 1.0, good(): 1.0}, threshold=0.5), True),
    ],
)
async def test_a_verdict_rests_on_the_unverified_evidence_of_the_parts_that_decide(
    composition: Composition, rests_on_it: bool
) -> None:
    result = await composition.measured(GIVEN)
    assert result.has_unverified_evidence is rests_on_it
    assert (f'"{UNSUPPORTED}":' in json.dumps(result.extra)) is rests_on_it, "the store looks for this key"
