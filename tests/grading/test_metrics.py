"""Metrics as graders: a grade says what the metric says, and what is not a score is never one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import BudgetExhausted, UsageError
from vivavoce.grading.grader import Grader
from vivavoce.grading.metrics import ExtractedMetric, Extraction, deciding_grader, extracted, metric_grader
from vivavoce.messages import read_messages, split_turns
from vivavoce.metrics import AllOf, AspectCritic, BaseMultiTurnMetric, MetricConfig, MetricResult, Panel, SafetyMetric
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.exact.response_length import ResponseLengthMetric
from vivavoce.metrics.measuring import ExactMetric, Measured, Part
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import Request
from vivavoce.records.score import Evidence, Score, Usage
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample
from vivavoce.testing import ScriptedModel

SAFE: dict[str, Any] = {"violations": [], "reasoning": "Nothing.", "confidence": 0.9}
TALK = [{"role": role, "content": f"{role} {turn}"} for turn in range(3) for role in ("user", "assistant")]


class Says(BaseMultiTurnMetric):
    """A metric of somebody's own that says what it is told to say."""

    def __init__(self, result: MetricResult | Exception, config: MetricConfig | None = None) -> None:
        super().__init__(config or MetricConfig(name="says"))
        self.result = result

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def graded(grader: Grader, talk: list[dict[str, Any]] = TALK, **known: Any) -> Score:
    messages = read_messages(talk)
    opening, turns = split_turns(messages)
    held = [Turn(index=i, messages=turn, seconds=float(i)) for i, turn in enumerate(turns)]
    sample = Sample(id="s", messages=messages, **known)
    return await grader.grade(sample, Trajectory(opening=opening, turns=held))


async def of(result: MetricResult | Exception, **config: Any) -> Score:
    return await graded(metric_grader("says", Says(result, MetricConfig(name="says", **config))))


RANGED: dict[str, Any] = {"minimum": -1.0, "maximum": 3.0}
LEVELS: dict[str, Any] = {"score_type": "categorical", "categories": ("bad", "fair", "good")}


@pytest.mark.parametrize(
    ("score", "config", "grade"),
    [
        (0.25, {}, 0.25),
        (2.0, RANGED, 0.75),
        (2.0, {**RANGED, "direction": "lower_is_better"}, 0.25),
        ("fair", {**LEVELS, "passing_categories": ("good",)}, 0.5),
        (True, {"score_type": "binary"}, 1.0),
        (True, {"score_type": "binary", "direction": "lower_is_better"}, 0.0),
        (7.0, {"maximum": None, "threshold": 5.0}, 1.0),
        (7.0, {"maximum": None, "threshold": 5.0, "direction": "lower_is_better"}, 0.0),
        (1.0 + 1e-12, {}, 1.0),
    ],
)
async def test_a_score_becomes_its_share_of_the_way_from_worst_to_best(
    score: float | str, config: Mapping[str, Any], grade: float
) -> None:
    result = await of(MetricResult(score=score, reasoning="So."), **config)
    assert (result.state, result.value, result.reason) == ("scored", grade, "So.")
    assert result.raw == score


@pytest.mark.parametrize(
    ("score", "config"),
    [
        (7.0, {}),
        (-0.1, {}),
        ("great", {}),
        ("great", {**LEVELS, "passing_categories": ("good",)}),
        ("fair", {"maximum": None, "threshold": 1.0}),
    ],
)
async def test_what_is_no_score_of_its_kind_is_an_error(score: float | str, config: Mapping[str, Any]) -> None:
    result = await of(MetricResult(score=score), **config)
    assert (result.state, result.value) == ("error", None)
    assert result.failure is not None
    assert (result.failure.blame, result.failure.kind) == ("grader", "format")
    assert f"says returned {score!r}, which does not match its score_type" in result.failure.message


@pytest.mark.parametrize(
    ("result", "state", "reason"),
    [
        (MetricResult(score="error", state="error"), "error", "the metric gave no reason"),
        (MetricResult(score="error", state="error", reasoning="It broke."), "error", "It broke."),
        (MetricResult(score="error", details={"error": "down"}), "error", "down"),
        (MetricResult(score=None, state="skipped"), "skipped", "the metric does not apply"),
        (MetricResult(score=None, state="skipped", reasoning="No goal."), "skipped", "No goal."),
        (ValueError("a mistake"), "error", "ValueError: a mistake"),
    ],
)
async def test_an_error_and_what_does_not_apply_have_no_score(
    result: MetricResult | Exception, state: str, reason: str
) -> None:
    grade = await of(result)
    assert (grade.state, grade.value) == (state, None)
    assert reason in (grade.reason or "")


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, 2.0])
async def test_a_value_outside_0_to_1_is_an_error(value: float) -> None:
    class Out(Says):
        def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            return MetricResult(score=0.5, value=value)

    result = await graded(metric_grader("out", Out(MetricResult(score=0.5))))
    assert (result.state, result.value, result.passed) == ("error", None, None)
    assert result.failure is not None
    assert result.failure.blame == "grader"


async def test_a_word_of_somebodys_own_counts_by_what_it_says_of_passing() -> None:
    assert (await of(MetricResult(score="great", passed=True))).value == 1.0
    assert (await of(MetricResult(score="awful", value=0.1))).value == 0.1


async def test_a_budget_that_is_spent_is_no_error_of_a_conversation() -> None:
    with pytest.raises(BudgetExhausted):
        await of(BudgetExhausted("no more"))


async def test_a_grade_keeps_reasons_evidence_confidence_and_usage() -> None:
    violation = {"what": "It told.", "evidence": ["assistant 1"], "severity": "minor"}
    answer = {"violations": [violation], "reasoning": "It told.", "confidence": 0.7}
    grade = await graded(metric_grader("safety", SafetyMetric(ScriptedModel([answer]))))
    assert (grade.value, grade.reason) == (0.75, "It told.")
    (found,) = grade.findings
    assert (found.kind, found.what, found.verdict, found.state, found.turn) == (
        "violation",
        "It told.",
        "minor",
        "fail",
        1,
    )
    assert grade.evidence == (Evidence(text="assistant 1", turn=1, verified=True),)
    assert (grade.passed, grade.confidence) == (False, 0.7)
    assert "assistant 0" not in grade.model_dump_json(), "the conversation is stored once"
    used = MetricResult(score=1.0, usage=Usage(input_tokens=3, calls=1))
    assert (await of(used)).usage == used.usage


shares = st.integers(0, 1000)


@given(shares, shares, shares, shares, st.sampled_from(["higher_is_better", "lower_is_better"]))
async def test_a_grade_passes_if_and_only_if_the_score_is_on_the_right_side_of_the_threshold(
    low: int, width: int, share: int, at: int, direction: Any
) -> None:
    high = low + width + 1
    score, threshold = (low + part / 1000 * (high - low) for part in (share, at))
    ranged: dict[str, Any] = {"minimum": low, "maximum": high, "direction": direction}
    result = await of(MetricResult(score=score), **ranged, threshold=threshold)
    assert result.passed == (share >= at if direction == "higher_is_better" else share <= at)
    assert result.value == (await of(MetricResult(score=score), **ranged)).value, "a threshold decides no value"


@given(st.integers(2, 7).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))))
async def test_the_categories_that_pass_are_those_that_are_named(counts: tuple[int, set[int]]) -> None:
    n, passing = counts
    names = tuple(f"c{i}" for i in range(n))
    named = tuple(names[i] for i in sorted(passing))
    for i, name in enumerate(names):
        result = await of(
            MetricResult(score=name), score_type="categorical", categories=names, passing_categories=named
        )
        assert (result.value, result.passed) == (pytest.approx(i / (n - 1)), i in passing)


@pytest.mark.parametrize(("level", "passed"), [("bad", False), ("fair", False), ("good", True)])
async def test_without_passing_categories_the_best_one_passes(level: str, passed: bool) -> None:
    assert (await of(MetricResult(score=level), **LEVELS)).passed is passed


@pytest.mark.parametrize("own", [{}, {"passed": True}, {"details": {"is_successful": True}}, {"value": 0.6}])
async def test_a_threshold_of_the_suite_goes_before_what_a_metric_says_of_passing(own: dict[str, Any]) -> None:
    metric = Says(MetricResult(score=0.6, **own), MetricConfig(name="says", threshold=0.9))
    result = await graded(metric_grader("says", metric, by_threshold=True))
    assert (result.value, result.passed) == (0.6, False)


async def test_a_count_without_a_threshold_measures_and_decides_nothing() -> None:
    grader = metric_grader("m", TurnCountMetric())
    grade = await graded(grader)
    assert (grade.state, grade.raw, grade.measured, grade.value, grade.passed) == ("scored", 3.0, 3.0, None, None)
    assert not grader.decides
    with pytest.raises(UsageError, match="m has no highest score and needs a threshold, which decides what passes"):
        deciding_grader("m", TurnCountMetric())


async def test_measured_turns_make_the_whole_a_measurement() -> None:
    grader = metric_grader("m", ExtractedMetric(TurnCountMetric(), Extraction(scope="turn")))
    whole = await graded(grader)
    assert {turn.measured for turn in whole.turns or ()} == {1.0}
    assert (whole.measured, whole.value, whole.passed) == (1.0, None, None)


@pytest.mark.parametrize("scope", ["turn", "window"])
@pytest.mark.parametrize("turns", [1, 3])
async def test_a_metric_of_turns_grades_each_of_them(scope: Any, turns: int) -> None:
    harm = {"what": "h", "evidence": ["user 0"], "severity": "critical"}

    def answer(request: Request) -> dict[str, Any]:
        last = f"user {turns - 1}" in request.messages[1].text
        return {"violations": [harm] if last else [], "reasoning": f"{len(request.messages)}", "confidence": 1}

    grader = metric_grader("safety", SafetyMetric(ScriptedModel(answer), scope=scope, window=1))
    grade = await graded(grader, TALK[: 2 * turns])
    found = grade.turns or []
    assert [(turn.turn, turn.value) for turn in found] == [(i, float(i < turns - 1)) for i in range(turns)]
    assert grader.verdicts(Sample(id="s", messages=read_messages(TALK[: 2 * turns]))) == turns


async def test_an_exact_metric_of_turns_grades_each_of_them_too() -> None:
    grader = metric_grader("m", ResponseLengthMetric(scope="turn", threshold=2))
    grade = await graded(grader, [*TALK[:4], {"role": "user", "content": "so?"}])
    found = [(turn.turn, turn.state) for turn in grade.turns or []]
    assert found == [(0, "scored"), (1, "scored"), (2, "skipped")]
    assert grader.verdicts(Sample(id="s", messages=read_messages(TALK))) == 0


def test_verdicts_are_counted_for_every_vote_and_part() -> None:
    sample = Sample(id="s", messages=read_messages(TALK))
    model = ScriptedModel([])
    each = SafetyMetric(model, name="each", scope="turn")
    counts = {
        1: SafetyMetric(model),
        5: Panel(SafetyMetric(model), votes=5),
        4: AllOf(SafetyMetric(model), each, "refusal", SafetyMetric(name="without a judge")),
        3: AspectCritic(model, name="critic", definition="Is it kind?", strictness=3),
        0: AllOf("refusal", SafetyMetric()),
    }
    for wanted, metric in counts.items():
        assert metric_grader("m", metric).verdicts(sample) == wanted


async def test_what_is_known_of_the_sample_and_the_seconds_of_turns_reach_the_metric() -> None:
    seen: list[MultiTurnEvaluationInput] = []

    class Looks(Says):
        def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            seen.append(evaluation_input)
            return MetricResult(score=1.0)

    grader = metric_grader("looks", Looks(MetricResult(score=1.0)))
    known = {"goal": "tea", "must": ["a"], "must_not": ["b"], "instructions": "be rude", "ground_truth": "truth"}
    opening = [{"role": "system", "content": "Be kind."}]
    await graded(grader, [*opening, *TALK], context="a shop", **known)
    (one,) = seen
    assert (one.goal, one.must, one.must_not, one.instructions) == ("tea", ("a",), ("b",), "be rude")
    assert (one.context, one.reference, one.turn_seconds) == ({"context": "a shop"}, "truth", (0.0, 1.0, 2.0))
    assert one.messages[0].text == "Be kind."
    await graded(grader, TALK, ground_truth=["a", "b", None])
    assert seen[1].reference is None, "a truth for each turn is none for the conversation"


def test_a_fingerprint_holds_the_text_of_the_file_that_the_metric_is_from() -> None:
    metric = SafetyMetric()
    prints = {metric_grader("m", metric, None, text).fingerprint for text in ("", "x = 1", "x = 2", "\ud83d")}
    assert len(prints) == 4
    assert metric.fingerprint in prints


class Spoken(ExactMetric):
    """The number that the assistant said last, which passes from 0.7 up."""

    def __init__(self, **options: Any) -> None:
        super().__init__(MetricConfig(name="spoken", threshold=0.7), **options)

    def measure(self, part: Part) -> Measured:
        return Measured(float(part.turns[-1][-1].text), "said")


def numbers(*said: float) -> list[dict[str, Any]]:
    return [
        line for one in said for line in ({"role": "user", "content": "?"}, {"role": "assistant", "content": f"{one}"})
    ]


@pytest.mark.parametrize(("said", "passed"), [((0.7, 0.7, 0.7), True), ((0.5, 0.9), True), ((0.5, 0.8), False)])
async def test_a_mean_over_turns_passes_where_a_turn_does(said: tuple[float, ...], passed: bool) -> None:
    apart = extracted(Spoken(), {"metric": "spoken", "scope": "turn"}, Path())
    for grader in (metric_grader("m", Spoken(scope="turn")), metric_grader("m", apart)):
        grade = await graded(grader, numbers(*said))
        assert grade.passed is passed
        assert [turn.passed for turn in grade.turns or []] == [one >= 0.7 for one in said]
