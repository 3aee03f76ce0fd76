"""How far a run went as it was recorded, counted from the scores that are stored."""

from __future__ import annotations

from typing import Any, cast

from vivavoce.records.details import AS_RECORDED, AsRecorded, CallsCovered, Difference, RecordedGrade
from vivavoce.records.run import Attempt, AttemptKey, Grading, Outcome
from vivavoce.records.score import Failure, Score, failed, skipped
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.run.details import recording_summaries
from vivavoce.store.store import Store

GRADING = Grading(
    id="g", run_id="r", spec={"graders": {"says": {"kind": "function"}, "same": {"kind": "recording"}}}, created_at=0.0
)


class Kept:
    """A store of these outcomes."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._kept = outcomes

    def outcomes(self, grading: str) -> tuple[Outcome, ...]:
        assert grading == "g"
        return self._kept


def outcome(sample: str, same: Score, *turns: float | None, target: str = "bot") -> Outcome:
    scores = tuple(
        Score(name="says", turn=index, value=value)
        if value is not None
        else failed(Failure(blame="judge", kind="x", message="x"), name="says", turn=index)
        for index, value in enumerate(turns)
    )
    says = Score(name="says", value=0.5, turns=scores)
    held = Trajectory(turns=[Turn(index=index, messages=[]) for index in range(len(turns))])
    key = AttemptKey(sample, target, 0)
    attempt = Attempt(key=key, scenario="", sample="{}", trajectory=held, started_at=0.0)
    return Outcome(attempt=attempt, scores={"says": says, "same": same})


def same(turns: int, difference: Difference | None = None, **more: Any) -> Score:
    about = {"target": "bot", "trial": 0, "candidates": 1, "whole": False}
    comparable = turns + (difference is not None)
    kept = AsRecorded.model_validate(
        {**about, "same": turns, "comparable": comparable, "difference": difference, **more}
    )
    return Score(name="same", value=float(difference is None), extra={AS_RECORDED: kept.model_dump(mode="json")})


def summaries(*outcomes: Outcome) -> list[Any]:
    return list(recording_summaries(cast("Store", Kept(*outcomes)), GRADING))


def words(turn: int) -> Difference:
    return Difference(kind="reply", turn=turn, what=f"in {turn}")


def test_a_run_without_a_recording_has_none() -> None:
    plain = GRADING.model_copy(update={"spec": {"graders": {"says": {"kind": "function"}}}})
    assert recording_summaries(cast("Store", Kept()), plain) == []


def test_the_earliest_conversation_of_each_kind_is_named() -> None:
    (found,) = summaries(
        outcome("a", same(1, words(1)), 1.0, 1.0),
        outcome("b", same(0, words(0)), 1.0),
        outcome("c", same(2), 1.0, 1.0),
        outcome("d", skipped("no row"), 1.0),
        outcome("e", failed(Failure(blame="target", kind="x", message="down")), 1.0),
    )
    (reply,) = found.different
    assert (reply.conversations, reply.sample, reply.turn, reply.what) == (2, "b", 0, "in 0")
    assert (found.conversations, found.same, found.unrecorded, found.errors, found.turns) == (5, 1, 1, 1, 5)


def test_only_comparable_turns_are_paired_and_an_error_is_no_score() -> None:
    graded = {"says": RecordedGrade(turn=1, value=1.0)}
    (found,) = summaries(
        outcome("a", same(1, words(1), recorded=graded), 1.0, 0.0, 0.0),
        outcome("b", same(1, words(1), recorded=graded), 1.0, None),
        outcome("c", same(2), 0.5, 1.0),
    )
    (says,) = found.pairs
    assert (says.n, says.better, says.worse, says.left_out) == (5, 0, 1, 1)
    assert (says.recorded, says.new) == (0.9, 0.7)


def test_calls_are_added_up_and_conversations_that_ended_for_want_of_one_are_named() -> None:
    calls = CallsCovered(answered=2, missed=1, unused=1, examples=["a()"])
    missing = Difference(kind="unrecorded", turn=1, what="x")
    (found,) = summaries(
        outcome("a", same(1, missing, calls=calls), 1.0, None), outcome("b", same(1, missing, calls=calls), 1.0, None)
    )
    assert found.calls == CallsCovered(answered=4, missed=2, unused=2, examples=["a()"])
    assert found.ended == ["a, turn 2", "b, turn 2"]


def test_targets_are_apart() -> None:
    found = summaries(outcome("a", same(1), 1.0), outcome("a", same(0, words(0)), 1.0, target="other"))
    assert [(one.target, one.same) for one in found] == [("bot", 1), ("other", 0)]
