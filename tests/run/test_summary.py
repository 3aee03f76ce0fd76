from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.grading.gates import Gate, SimpleGate, Threshold
from vivavoce.grading.scores import ErrorLimit
from vivavoce.records.run import AttemptKey, ScoreRow, Verdict
from vivavoce.records.score import State
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.summary import Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.run.verdict import Rules

EASY = SimpleGate("exact", Threshold("avg_score", "gte", 0.5))


def summary(
    *scores: tuple[str, float | None], gate: Gate | None = None, target: str = "bot", limit: ErrorLimit | None = None
) -> Summary:
    """Return the summary of scores by grader, where None is an error."""
    rows = [
        row(AttemptKey(str(i), target, 0), name, "error" if value is None else "scored", value)
        for i, (name, value) in enumerate(scores)
    ]
    errors = sum(value is None for _, value in scores)
    return summarise(tally(rows), attempts=len(rows), failed=0, rules=Rules(gate=gate, limit=limit), errors=errors)


def row(key: AttemptKey, name: str, state: State, value: float | None) -> ScoreRow:
    """Return a grade that passes from 1 on."""
    return ScoreRow(key, "grade", name, state, value, None if value is None else value >= 1)


@pytest.mark.parametrize("gate", [None, EASY])
def test_a_grader_that_scored_nothing_because_of_errors_leaves_the_run_inconclusive(gate: Gate | None) -> None:
    found = summary(("exact", 1.0), ("judge", None), ("judge", None), gate=gate)
    assert found.verdict == "inconclusive"
    told = explain_verdict(found)
    assert "inconclusive · judge: nothing was scored (2 errors)" in told
    assert ("pass · exact: mean must be ≥ 0.5; it is 1" in told) == (gate is not None)


def test_what_the_gate_says_of_such_a_grader_is_not_said_twice() -> None:
    found = summary(("exact", None), ("exact", None), ("other", 1.0), gate=EASY)
    assert explain_verdict(found) == ["inconclusive · exact: nothing was scored (2 errors)"]


@pytest.mark.parametrize(("scores", "verdict"), [([], "inconclusive"), ([("exact", None)], "inconclusive")])
@pytest.mark.parametrize("gate", [None, EASY])
def test_where_nothing_at_all_was_scored_nothing_is_decided(
    scores: list[tuple[str, float | None]], verdict: Verdict, gate: Gate | None
) -> None:
    found = summary(*scores, gate=gate)
    assert found.verdict == verdict
    assert found.reasons[0].code == "nothing_scored"


def test_a_run_in_which_everything_was_skipped_has_decided_nothing() -> None:
    rows = [row(AttemptKey("a", "bot", 0), "exact", "skipped", None)]
    found = summarise(tally(rows), attempts=1, failed=0)
    assert (found.verdict, explain_verdict(found)) == ("inconclusive", ["inconclusive · nothing was scored"])


def test_with_several_targets_the_silent_one_is_named() -> None:
    rows = [
        row(AttemptKey("a", "v1", 0), "exact", "scored", 1.0),
        row(AttemptKey("a", "v2", 0), "exact", "error", None),
    ]
    found = summarise(tally(rows), attempts=2, failed=1)
    assert explain_verdict(found) == ["inconclusive · v2: exact: nothing was scored (1 error)"]


def passing(sample: str, value: float, passed: bool, trial: int = 0) -> ScoreRow:
    """Return a score whose passing is not a matter of its value."""
    return ScoreRow(AttemptKey(sample, "bot", trial), "grade", "g", "scored", value, passed)


def test_the_pass_rate_counts_the_scores_that_pass_whatever_their_value() -> None:
    rows = [passing("a", 0.25, True), passing("b", 0.99, False), passing("c", 1.0, False)]
    rows.append(row(AttemptKey("d", "bot", 0), "g", "error", None))
    found = summarise(
        tally(rows), attempts=4, failed=0, rules=Rules(gate=SimpleGate("g", Threshold("accuracy", "gte", 30)))
    )
    assert found.grader("g").pass_rate == pytest.approx(1 / 3)
    said = "inconclusive · g: pass rate must be ≥ 30%; it is 33.33%; 1 error could change the result"
    assert explain_verdict(found) == [said]


def test_a_trial_succeeds_where_its_score_passes() -> None:
    rows = [passing("a", 0.5, passed, trial) for trial, passed in enumerate((True, False, True))]
    found = summarise(tally(rows), attempts=3, failed=0).grader("g")
    assert (found.pass_at[2], found.pass_hat[2]) == (pytest.approx(1), pytest.approx(1 / 3))


def test_a_gate_with_a_threshold_of_its_own_counts_by_that_and_leaves_the_pass_rate() -> None:
    rows = [passing("a", 0.25, True), passing("b", 0.75, False)]
    gate = SimpleGate("g", Threshold("accuracy", "gte", 50, pass_threshold=0.5))
    found = summarise(tally(rows), attempts=2, failed=0, rules=Rules(gate=gate))
    assert (found.verdict, explain_verdict(found)) == (
        "pass",
        ["pass · g: share of scores ≥ 0.5 must be ≥ 50%; it is 50%"],
    )
    assert found.grader("g").pass_rate == 0.5


def test_a_gate_that_counts_what_lies_below_still_counts_that() -> None:
    rows = [passing("a", 0.25, False), passing("b", 0.75, True), passing("c", 1.0, True)]
    gate = SimpleGate("g", Threshold("accuracy", "lte", 50, pass_op="lt"))
    found = summarise(tally(rows), attempts=3, failed=0, rules=Rules(gate=gate))
    assert explain_verdict(found) == ["fail · g: share of scores < 1 must be ≤ 50%; it is 66.67%"]


def test_without_a_gate_and_without_errors_there_is_nothing_to_decide() -> None:
    found = summary(("exact", 1.0), ("exact", 0.0))
    assert (found.verdict, found.reasons) == (None, [])


def test_an_error_without_a_gate_leaves_the_run_inconclusive() -> None:
    found = summary(("exact", 1.0), ("exact", None))
    assert (found.verdict, found.error_attempts) == ("inconclusive", 1)
    assert explain_verdict(found) == [
        "inconclusive · 1 conversation ended with an error or a missing score; allowed: 0"
    ]


@pytest.mark.parametrize(
    ("limit", "errors", "verdict"), [("1", 1, "pass"), ("1", 2, "inconclusive"), ("25%", 1, "pass"), ("25%", 2, None)]
)
def test_as_many_errors_as_allowed_do_not_change_the_result(limit: str, errors: int, verdict: Verdict | None) -> None:
    scores = [("exact", 1.0)] * (4 - errors) + [("exact", None)] * errors
    gated = summary(*scores, gate=SimpleGate("exact", Threshold("min", "gte", 1.0)), limit=ErrorLimit(limit))
    assert gated.verdict == (verdict or "inconclusive")
    without = summary(*scores, limit=ErrorLimit(limit))
    assert without.verdict == (None if verdict == "pass" else "inconclusive")


def test_more_errors_than_allowed_do_not_hide_that_a_gate_fails() -> None:
    found = summary(("exact", 0.0), ("exact", None), ("exact", None), gate=EASY, limit=ErrorLimit("1"))
    assert found.verdict == "fail"
    assert [one.code for one in found.reasons] == ["threshold", "errors"]


@pytest.mark.parametrize("text", ["", "-1", "1.5", "%", "101%", "none", "9" * 5000, "9" * 5000 + "%"])
def test_a_limit_of_errors_is_a_number_or_a_percentage(text: str) -> None:
    with pytest.raises(UsageError, match="a number or a percentage"):
        ErrorLimit(text)


def test_a_run_that_is_stopped_keeps_its_figures_and_decides_nothing() -> None:
    found = summary(("exact", 1.0), gate=EASY).stopped_by("interrupted", 1_200)
    assert (found.verdict, found.grader("exact").mean) == ("inconclusive", 1.0)
    assert explain_verdict(found) == [
        "interrupted after 1 of 1,200 conversations",
        "so far: pass · exact: mean must be ≥ 0.5; it is 1",
    ]
    assert Summary.model_validate_json(found.model_dump_json()) == found
