"""`GradeResult`: what letta-evals' grading and reward functions see of a score, and say as one."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from vivavoce.grading.functions import GradeResult, metadata_of
from vivavoce.records.score import Failure, Finding, Score, failed, mean_of_turns, skipped

TURNS = [
    Score(turn=0, value=1.0, submission="Paris", ground_truth="Paris", reason="matches"),
    skipped("this turn has no ground truth", turn=1),
    Score(turn=2, value=0.0, submission="Madrid", ground_truth="Rome", reason="does not contain 'Rome'"),
]


def test_the_grades_of_turns_are_in_the_metadata_and_count_from_0() -> None:
    metadata = metadata_of(mean_of_turns(TURNS))
    assert (metadata["turns_passed"], metadata["turns_total"]) == (1, 2)
    assert [turn["turn"] for turn in metadata["per_turn_grades"]] == [0, 1, 2]
    assert metadata["per_turn_grades"][2] == {
        "turn": 2,
        "score": 0.0,
        "state": "scored",
        "rationale": "does not contain 'Rome'",
        "submission": "Madrid",
        "ground_truth": "Rome",
    }


def test_a_turn_that_could_not_be_graded_says_why_in_the_metadata() -> None:
    failure = Failure(blame="grader", kind="crash", message="boom")
    metadata = metadata_of(mean_of_turns([TURNS[0], failed(failure, turn=1)]))
    assert metadata["per_turn_grades"][1]["failure"] == {"blame": "grader", "kind": "crash", "message": "boom"}
    assert (metadata["turns_passed"], metadata["turns_total"]) == (1, 2)


def test_what_was_not_scored_by_turns_has_no_grades_of_turns() -> None:
    metadata = metadata_of(Score(value=0.5, raw=3.0, passed=True, confidence=0.7, extra={"own": 1}))
    assert metadata == {"own": 1, "score": 3.0, "passed": True, "confidence": 0.7}


@pytest.mark.parametrize(("passed", "decided"), [(None, False), (True, True), (False, False)])
def test_a_result_says_whether_it_passes_or_leaves_it_to_the_score(passed: bool | None, decided: bool) -> None:
    assert GradeResult(score=0.5, passed=passed).as_score().passed is decided


def test_a_score_is_the_same_after_a_round_through_a_result() -> None:
    finding = Finding(kind="claim", what="It is open.", verdict="supported", state="pass", turn=0)
    for score in (
        Score(value=0.5, passed=True, reason="half", findings=(finding,), extra={"own": 1}),
        skipped("no truth"),
        failed(Failure(blame="judge", kind="http", message="down")),
    ):
        assert GradeResult.of(score).as_score() == score


@pytest.mark.parametrize("fields", [{}, {"score": 0.5, "state": "error"}, {"score": 1.5}, {"score": float("nan")}])
def test_a_result_without_a_score_of_its_state_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GradeResult.model_validate(fields)
