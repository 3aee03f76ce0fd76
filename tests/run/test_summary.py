from __future__ import annotations

import pytest

from vivavoce.grading.gates import Gate, SimpleGate, Threshold
from vivavoce.records.run import AttemptKey, ScoreRow, Verdict
from vivavoce.run.summary import Summary, summarise, tally

EASY = SimpleGate("exact", Threshold("avg_score", "gte", 0.5))


def summary(*scores: tuple[str, float | None], gate: Gate | None = None, target: str = "bot") -> Summary:
    """Return the summary of scores by grader, where None is an error."""
    rows = [
        ScoreRow(AttemptKey(str(i), target, 0), "grade", name, "error" if value is None else "scored", value)
        for i, (name, value) in enumerate(scores)
    ]
    return summarise(tally(rows), attempts=len(rows), failed=0, gate=gate)


@pytest.mark.parametrize("gate", [None, EASY])
def test_a_grader_that_scored_nothing_because_of_errors_leaves_the_run_inconclusive(gate: Gate | None) -> None:
    found = summary(("exact", 1.0), ("judge", None), ("judge", None), gate=gate)
    assert found.verdict == "inconclusive"
    assert found.reasons[-1] == "inconclusive · judge: nothing was scored (2 errors)"
    assert ("pass · exact: avg_score ≥ 0.5, got 1" in found.reasons) == (gate is not None)


def test_what_the_gate_says_of_such_a_grader_is_not_said_twice() -> None:
    found = summary(("exact", None), ("exact", None), ("other", 1.0), gate=EASY)
    assert found.reasons == ["inconclusive · exact: nothing was scored (2 errors)"]


@pytest.mark.parametrize(("scores", "verdict"), [([], "inconclusive"), ([("exact", None)], "inconclusive")])
@pytest.mark.parametrize("gate", [None, EASY])
def test_where_nothing_at_all_was_scored_nothing_is_decided(
    scores: list[tuple[str, float | None]], verdict: Verdict, gate: Gate | None
) -> None:
    found = summary(*scores, gate=gate)
    assert found.verdict == verdict
    assert "nothing was scored" in found.reasons[0]


def test_a_run_in_which_everything_was_skipped_has_decided_nothing() -> None:
    rows = [ScoreRow(AttemptKey("a", "bot", 0), "grade", "exact", "skipped", None)]
    found = summarise(tally(rows), attempts=1, failed=0, gate=None)
    assert (found.verdict, found.reasons) == ("inconclusive", ["inconclusive · nothing was scored"])


def test_with_several_targets_the_silent_one_is_named() -> None:
    rows = [
        ScoreRow(AttemptKey("a", "v1", 0), "grade", "exact", "scored", 1.0),
        ScoreRow(AttemptKey("a", "v2", 0), "grade", "exact", "error", None),
    ]
    found = summarise(tally(rows), attempts=2, failed=1, gate=None)
    assert found.reasons == ["inconclusive · v2: exact: nothing was scored (1 error)"]


def test_some_errors_without_a_gate_decide_nothing() -> None:
    found = summary(("exact", 1.0), ("exact", None))
    assert (found.verdict, found.reasons) == (None, [])


def test_a_run_that_is_stopped_keeps_its_figures_and_decides_nothing() -> None:
    found = summary(("exact", 1.0), gate=EASY).stopped_by("interrupted", 1_200)
    assert (found.verdict, found.grader("exact").mean) == ("inconclusive", 1.0)
    assert found.explained == [
        "interrupted after 1 of 1,200 conversations",
        "so far: pass · exact: avg_score ≥ 0.5, got 1",
    ]
    assert Summary.model_validate_json(found.model_dump_json()) == found
