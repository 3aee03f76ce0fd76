"""`Score`: whether it passes is decided when it is made, and nothing in it contradicts the rest."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.comparing.thresholds import reaches
from vivavoce.records.score import UNSUPPORTED, Evidence, Failure, Finding, Score, failed, mean_of_turns, skipped

BOOM = Failure(blame="grader", kind="crash", message="boom")
VALUES = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


@given(VALUES)
def test_without_a_threshold_a_value_of_1_passes_and_no_other(value: float) -> None:
    assert Score(value=value).passed is (value == 1)


@given(VALUES, st.booleans())
def test_what_was_decided_stands_whatever_the_value_is(value: float, passed: bool) -> None:
    assert Score(value=value, passed=passed).passed is passed


@pytest.mark.parametrize("raw", [3.0, "good"])
def test_a_score_without_a_value_passes_only_where_somebody_says_so(raw: float | str) -> None:
    assert Score(raw=raw).passed is None
    assert Score(raw=raw, passed=True).passed is True


def test_what_has_no_score_neither_passes_nor_fails() -> None:
    assert failed(BOOM).passed is None
    assert skipped("no truth").passed is None
    assert (failed(BOOM).state, failed(BOOM).reason, failed(BOOM).failure) == ("error", "boom", BOOM)
    assert (skipped("no truth").state, skipped("no truth").reason) == ("skipped", "no truth")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "has state 'scored' if and only if it has a value; got scored with None"),
        ({"state": "error", "value": 0.0}, "got error with 0.0"),
        ({"state": "skipped", "value": 1.0}, "got skipped with 1.0"),
        ({"state": "error", "raw": "good"}, "got error with good"),
        ({"state": "error", "passed": False}, "state 'error' neither passes nor fails; got passed=False"),
        ({"state": "skipped", "passed": True}, "state 'skipped' neither passes nor fails; got passed=True"),
        ({"value": 1.1}, "less than or equal to 1"),
        ({"value": -0.1}, "greater than or equal to 0"),
        ({"value": math.nan}, "finite number"),
        ({"raw": math.inf}, "finite number"),
        ({"value": 0.5, "state": "done"}, "'scored', 'error' or 'skipped'"),
    ],
)
def test_a_score_that_contradicts_itself_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Score(**fields)


def test_a_yes_stays_a_yes_and_a_number_becomes_a_float() -> None:
    raw_values = [Score(value=1.0, raw=raw).raw for raw in (True, 1, 0.5, "1")]
    assert [(type(raw), raw) for raw in raw_values] == [(bool, True), (float, 1.0), (float, 0.5), (str, "1")]


@given(VALUES, st.integers(1, 60))
def test_a_mean_of_equal_turns_passes_at_the_value_of_each_of_them(value: float, count: int) -> None:
    turns = [Score(turn=i, value=value) for i in range(count)]
    whole = mean_of_turns(turns, value)
    assert (whole.value, whole.passed) == (value, True)


@given(VALUES, VALUES)
def test_no_other_value_reaches_a_threshold_above_it(value: float, threshold: float) -> None:
    assert reaches(value, threshold) is (value >= threshold)


@given(st.lists(VALUES, min_size=1, max_size=9), VALUES)
def test_the_score_of_turns_is_their_mean_and_passes_by_the_threshold(values: list[float], threshold: float) -> None:
    turns = [Score(turn=i, value=value, passed=value >= threshold) for i, value in enumerate(values)]
    whole = mean_of_turns(turns, threshold, name="g")
    mean = float(sum(map(Fraction, map(str, values))) / len(values))
    assert (whole.name, whole.state, whole.value, whole.turns) == ("g", "scored", mean, tuple(turns))
    assert whole.passed is reaches(mean, threshold)
    passed = sum(value >= threshold for value in values)
    assert whole.reason == f"{passed}/{len(values)} turns passed"


def test_without_a_threshold_every_turn_has_to_be_perfect() -> None:
    assert mean_of_turns([Score(turn=0, value=1.0), Score(turn=1, value=1.0)]).passed is True
    assert mean_of_turns([Score(turn=0, value=1.0), Score(turn=1, value=0.99)]).passed is False


def test_turns_that_are_skipped_do_not_count_and_where_all_are_so_is_the_whole() -> None:
    mean = mean_of_turns([Score(turn=0, value=0.5), skipped("no truth", turn=1)])
    assert (mean.value, mean.reason) == (0.5, "0/1 turns passed")
    none = mean_of_turns([skipped("no truth", turn=0)])
    assert (none.state, none.value, none.passed) == ("skipped", None, None)
    assert none.turns is not None


def test_one_turn_in_error_is_an_error_of_the_whole_which_names_it() -> None:
    whole = mean_of_turns([Score(turn=0, value=1.0), failed(BOOM, turn=1), skipped("no truth", turn=2)])
    assert (whole.state, whole.value, whole.passed, whole.failure) == ("error", None, None, BOOM)
    assert whole.reason == "1 of 2 turns could not be graded; turn 2: boom"


def test_all_evidence_is_that_of_the_findings_then_the_other_each_once() -> None:
    first, second = Evidence(text="a", turn=0, verified=True), Evidence(text="b")
    finding = Finding(kind="claim", what="It is.", verdict="supported", state="pass", evidence=(first,))
    score = Score(value=1.0, findings=(finding, finding), other_evidence=(second, first))
    assert score.evidence == (first, second)


def test_a_score_is_the_same_after_a_round_through_json() -> None:
    finding = Finding(kind="claim", what="It is.", verdict="supported", state="pass", turn=1, data={"of": 2})
    score = mean_of_turns(
        [Score(turn=0, value=0.5, raw=3.0, passed=True, findings=(finding,)), skipped("no truth", turn=1)],
        0.5,
        extra={"own": [1]},
    )
    assert Score.model_validate_json(score.model_dump_json()) == score


def test_a_mean_over_turns_rests_on_the_unverified_evidence_of_its_turns() -> None:
    sure = Score(value=1.0)
    doubtful = Score(value=0.0, extra={UNSUPPORTED: ["it is polite"]})
    assert not mean_of_turns([sure, sure]).has_unverified_evidence
    assert mean_of_turns([sure, doubtful]).has_unverified_evidence
