"""Graders over turns and over whole conversations; what breaks is an error and never a score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest

from vivavoce.errors import BudgetExhausted, GraderFault
from vivavoce.grading import graders as functions
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.functions import GradeResult
from vivavoce.grading.grader import Grader, as_grade, in_spite_of_errors, user_score
from vivavoce.grading.graders import Case, Truth
from vivavoce.messages import AIMessage, HumanMessage, ToolCall
from vivavoce.records.score import Failure, Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.samples.sample import Sample

CAPITALS = ["Paris", "It is Berlin.", "Madrid"]


def held(*replies: str | None, failure: Failure | None = None) -> Trajectory:
    turns = [
        Turn(index=i, messages=[HumanMessage(content=f"q{i}"), *([AIMessage(content=r)] if r is not None else [])])
        for i, r in enumerate(replies)
    ]
    if failure is not None:
        turns[-1] = turns[-1].model_copy(update={"failure": failure})
    return Trajectory(turns=turns, failure=failure)


def asked(truth: Any, turns: int = 3, **more: Any) -> Sample:
    return Sample(id="s", input=[f"q{i}" for i in range(turns)], ground_truth=truth, **more)


def grader(score: Callable[..., Any] = functions.contains, truth: Truth = "ground_truth") -> Grader:
    return Grader("g", last_assistant, score, truth, "f")


async def test_each_turn_is_graded_against_its_own_truth() -> None:
    result = await grader().grade(asked(["Paris", "Berlin", "Rome"]), held(*CAPITALS))
    assert result.value == pytest.approx(2 / 3)
    assert result.reason == "2/3 turns passed"
    turns = list(result.turns or ())
    assert [(turn.value, turn.passed) for turn in turns] == [(1.0, True), (1.0, True), (0.0, False)]
    assert (turns[2].turn, turns[2].submission, turns[2].ground_truth) == (2, "Madrid", "Rome")
    assert turns[2].reason == "does not contain 'Rome'"


async def test_a_turn_sees_nothing_of_the_other_turns() -> None:
    result = await grader().grade(asked(["Berlin", "Paris", "Paris"]), held(*CAPITALS))
    assert result.value == 0.0


async def test_a_null_truth_skips_its_turn() -> None:
    result = await grader().grade(asked(["Paris", None, "Rome"]), held(*CAPITALS))
    assert result.value == 0.5
    assert result.reason == "1/2 turns passed"
    assert [turn.state for turn in result.turns or ()] == ["scored", "skipped", "scored"]


async def test_all_nulls_leave_nothing_to_grade() -> None:
    result = await grader().grade(asked([None, None, None]), held(*CAPITALS))
    assert (result.state, result.value) == ("skipped", None)


async def test_a_single_truth_grades_the_final_answer() -> None:
    result = await grader().grade(asked("Madrid"), held(*CAPITALS))
    assert result.value == 1.0
    assert result.turns is None
    assert result.submission == "Madrid"


async def test_a_grader_that_breaks_on_one_turn_is_an_error_of_that_turn_and_no_zero() -> None:
    def fussy(case: Case) -> Score:
        if "Berlin" in case.submission:
            raise RuntimeError("no Berlin today")
        return functions.contains(case)

    result = await grader(fussy).grade(asked(["Paris", "Berlin", "Rome"]), held(*CAPITALS))
    turns = result.turns or []
    assert [turn.state for turn in turns] == ["scored", "error", "scored"]
    assert turns[1].value is None
    assert turns[1].failure is not None
    assert turns[1].failure.blame == "grader"
    assert (result.state, result.value) == ("error", None)
    assert "1 of 3 turns could not be graded; turn 2: RuntimeError: no Berlin today" in (result.reason or "")
    assert [turn.passed for turn in turns] == [True, None, False]


async def test_a_turn_that_failed_is_the_targets_error_and_the_turns_before_it_keep_their_grades() -> None:
    failure = Failure(blame="target", kind="timeout", message="too slow")
    result = await grader().grade(asked(["Paris", "Berlin", "Rome"]), held("Paris", None, failure=failure))
    assert [turn.state for turn in result.turns or ()] == ["scored", "error", "error"]
    assert result.failure == failure


async def test_a_conversation_that_broke_in_a_turn_without_a_truth_has_no_score() -> None:
    failure = Failure(blame="target", kind="crash", message="boom")
    result = await grader().grade(asked(["hi", None], 2), held("hi", None, failure=failure))
    assert [turn.state for turn in result.turns or ()] == ["scored", "skipped"]
    assert (result.state, result.value, result.passed, result.failure) == ("error", None, None, failure)
    assert result.reason == "the conversation ended with an error after 1 graded turn: boom"


async def test_what_does_not_apply_is_skipped_even_where_the_conversation_broke() -> None:
    failure = Failure(blame="target", kind="crash", message="boom")
    result = await grader().grade(asked(None, 1), held(None, failure=failure))
    assert (result.state, result.reason) == ("skipped", "the sample has no ground_truth")


async def test_a_failed_conversation_is_not_graded_as_a_whole() -> None:
    failure = Failure(blame="target", kind="crash", message="boom")
    result = await grader().grade(asked("Paris", 1), held(None, failure=failure))
    assert (result.state, result.failure) == ("error", failure)


async def test_silence_is_zero_and_the_grader_is_not_asked() -> None:
    def generous(case: Case) -> Score:
        raise AssertionError("asked about nothing")

    result = await grader(generous, "none").grade(asked("x"), held("a", "b", "  "))
    assert (result.value, result.reason) == (0.0, "the answer is empty: the extractor found nothing")


async def test_a_sample_without_a_truth_is_skipped_by_a_grader_that_needs_one() -> None:
    result = await grader().grade(asked(None), held(*CAPITALS))
    assert (result.state, result.reason) == ("skipped", "the sample has no ground_truth")


async def test_tool_call_graders_work_per_turn_when_the_references_do() -> None:
    call = ToolCall(name="find", args={"id": 1})
    turns = [
        Turn(index=0, messages=[HumanMessage(content="a"), AIMessage(tool_calls=[call])]),
        Turn(index=1, messages=[HumanMessage(content="b"), AIMessage(content="no call")]),
        Turn(index=2, messages=[HumanMessage(content="c"), AIMessage(content="x")]),
    ]
    sample = asked(None, reference_tool_calls=[[call], [call], None])
    grader = Grader("g", last_assistant, functions.trajectory_match, "reference_tool_calls", "f", accepts_empty=True)
    result = await grader.grade(sample, Trajectory(turns=turns))
    assert [turn.state for turn in result.turns or ()] == ["scored", "scored", "skipped"]
    assert [turn.value for turn in result.turns or ()] == [1.0, 0.0, None]
    assert "missing" in ((result.turns or [])[1].reason or "")


def likeness(case: Case) -> Score:
    return functions.fuzzy_ratio(case)


@pytest.mark.parametrize(("threshold", "passed"), [(None, False), (0.8, True), (0.9, False)])
async def test_a_threshold_decides_what_passes_and_never_the_value(threshold: float | None, passed: bool) -> None:
    one = replace(grader(likeness), threshold=threshold)
    result = await one.grade(asked("Berlin"), held("a", "b", "Berlim"))
    assert (result.value, result.passed) == (pytest.approx(5 / 6), passed)


async def test_a_threshold_goes_before_what_a_function_says_of_passing() -> None:
    def sure(sample: Sample, submission: str) -> GradeResult:
        return GradeResult(score=0.5, passed=True)

    for threshold, passed in ((None, True), (0.4, True), (0.6, False)):
        one = replace(grader(user_score(sure, {}, 5), "none"), threshold=threshold)
        result = await one.grade(asked("x"), held("a", "b", "c"))
        assert (result.value, result.passed) == (0.5, passed)


@pytest.mark.parametrize(
    ("threshold", "turns", "passed"), [(0.9, [True, False, False], False), (0.8, [True, True, False], True)]
)
async def test_with_a_threshold_each_turn_passes_by_it_and_the_whole_by_the_mean(
    threshold: float, turns: list[bool], passed: bool
) -> None:
    one = replace(grader(likeness), threshold=threshold)
    result = await one.grade(asked(["Paris", "Berlin", "Rome"]), held("Paris", "Berlim", "Romeria"))
    assert [turn.passed for turn in result.turns or ()] == turns
    assert result.value == pytest.approx(sum(turn.value or 0 for turn in result.turns or ()) / 3)
    assert result.passed is passed


async def test_an_empty_submission_has_the_value_0_which_a_threshold_of_0_lets_pass() -> None:
    for threshold, passed in ((None, False), (0.5, False), (0.0, True)):
        result = await replace(grader(), threshold=threshold).grade(asked("x"), held("a", "b", " "))
        assert (result.value, result.passed) == (0.0, passed)


async def test_running_out_of_budget_is_not_swallowed() -> None:
    def broke(case: Case) -> Score:
        raise BudgetExhausted("no calls left")

    with pytest.raises(BudgetExhausted):
        await grader(broke).grade(asked("x"), held(*CAPITALS))


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (True, 1.0),
        (0, 0.0),
        (0.25, 0.25),
        ({"score": 0.5, "rationale": "half"}, 0.5),
        (Decimal("0.7"), 0.7),
        (Fraction(1, 4), 0.25),
        (numpy.bool_(True), 1.0),
        (numpy.float32(0.25), 0.25),
        (numpy.float32(0.7), 0.7),
        (numpy.float64(0.25), 0.25),
        (numpy.int64(1), 1.0),
        (numpy.array(0.5), 0.5),
        ({"score": numpy.float32(0.25), "passed": numpy.bool_(False)}, 0.25),
        ({"passed": True}, 1.0),
        ({"passed": False, "rationale": "no"}, 0.0),
        ({"passed": numpy.bool_(True)}, 1.0),
    ],
)
def test_a_users_function_may_return_numbers_bools_and_dicts(value: Any, score: float) -> None:
    assert as_grade(value, "mine").score == score


@pytest.mark.parametrize(
    "value",
    [
        "good",
        1.5,
        {"score": 7},
        {"points": 1},
        float("nan"),
        Decimal("NaN"),
        Decimal("1.00000000000000000001"),
        Fraction(-1, 10**30),
        {"score": "0.7"},
        {"score": 1, "passed": "false"},
        {"passed": "false"},
        {"passed": 1},
        {"passed": None},
        {},
        [1],
        numpy.array([1.0, 1.0]),
        1j,
    ],
)
def test_anything_else_is_a_fault_that_says_what_came_back(value: Any) -> None:
    with pytest.raises(GraderFault, match="mine returned"):
        as_grade(value, "mine")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "mine returned None: it does not apply"),
        ({"state": "skipped", "rationale": "no table"}, "no table"),
        (GradeResult(state="skipped", rationale="no table"), "no table"),
    ],
)
def test_a_users_function_may_say_that_it_does_not_apply(value: Any, reason: str) -> None:
    score = as_grade(value, "mine").as_score()
    assert (score.state, score.value, score.passed, score.reason) == ("skipped", None, None, reason)


async def test_a_slow_function_of_the_user_ends_at_its_time_limit() -> None:
    async def forever(sample: Sample, submission: str) -> float:
        await asyncio.sleep(60)
        return 1.0

    result = await grader(user_score(forever, {}, 0.01), "none").grade(asked("x"), held(*CAPITALS))
    assert result.failure is not None
    assert result.failure.kind == "timeout"


async def test_a_users_function_is_given_what_it_asks_for() -> None:
    def nosy(sample: Sample, submission: str, trajectory: list[list[Any]], config: dict[str, Any]) -> dict[str, Any]:
        return {"score": 1.0, "rationale": f"{sample.id} {submission} {len(trajectory)} {config['deep']}"}

    result = await grader(user_score(nosy, {"deep": 3}, 5), "none").grade(asked("x"), held(*CAPITALS))
    assert result.reason == "s Madrid 3 3"


BROKE = Failure(blame="target", kind="crash", message="boom")
ENDED = "the conversation ended with an error after 2 turns: boom"


async def test_a_grader_that_scores_errors_grades_the_turns_that_were_held_and_says_how_it_ended() -> None:
    lenient = in_spite_of_errors(grader())
    result = await lenient.grade(asked(["Paris", "Berlin", "Rome"]), held("Paris", "Bonn", None, failure=BROKE))
    assert (result.state, result.value, result.passed) == ("scored", 0.5, False)
    assert result.reason == f"1/2 turns passed; {ENDED}"
    assert [turn.state for turn in result.turns or ()] == ["scored", "scored", "skipped"]


async def test_it_grades_what_there_is_of_the_whole_conversation_too() -> None:
    lenient = in_spite_of_errors(grader())
    result = await lenient.grade(asked("Paris"), held("Rome", "Paris", None, failure=BROKE))
    assert (result.state, result.value, result.passed) == ("scored", 1.0, True)
    assert result.reason == f"matches; {ENDED}"
    assert lenient.fingerprint != grader().fingerprint


@pytest.mark.parametrize("truth", ["Paris", ["Paris"]])
async def test_where_no_turn_was_held_to_its_end_there_is_nothing_to_score(truth: Any) -> None:
    result = await in_spite_of_errors(grader()).grade(asked(truth, 1), held(None, failure=BROKE))
    assert (result.state, result.failure) == ("error", BROKE)


async def test_a_conversation_that_did_not_end_in_an_error_is_graded_as_by_any_grader() -> None:
    for sample, talk in ((asked("Paris"), held("Paris")), (asked(["Paris", "x"], 2), held("Paris"))):
        lenient, strict = await in_spite_of_errors(grader()).grade(sample, talk), await grader().grade(sample, talk)
        assert lenient.model_copy(update={"fingerprint": strict.fingerprint}) == strict
