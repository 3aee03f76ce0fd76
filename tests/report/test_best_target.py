"""Which target is best: only one whose interval lies above all others."""

from __future__ import annotations

import pytest

from vivavoce.report.best_target import sentences, standings
from vivavoce.run.summary import GraderSummary, Summary


def graded(target: str, mean: float | None, low: float | None, high: float | None, errors: int = 0) -> GraderSummary:
    scored = 0 if mean is None else 10
    counts = {"scored": scored, "samples": scored, "errors": errors, "skipped": 0}
    return GraderSummary.model_validate(
        {"name": "right", "target": target, "mean": mean, "low": low, "high": high, **counts}
    )


def said(*graders: GraderSummary, stopped: str | None = None) -> list[tuple[str | None, str]]:
    summary = Summary(attempts=10, failed_attempts=0, graders=list(graders), stopped=stopped)
    return list(zip((one.best for one in standings(summary)), sentences(summary), strict=True))


A, B, C = graded("a", 0.5, 0.4, 0.6), graded("b", 0.9, 0.8, 1.0), graded("c", 0.7, 0.5, 0.85)


def test_the_one_above_all_others_is_best() -> None:
    assert said(A, B) == [("b", "right: b is best: its 95% interval is above the others")]


def test_where_intervals_overlap_none_is() -> None:
    assert said(A, B, C) == [(None, "right: b and c are not distinguishable: their 95% intervals overlap")]


def test_intervals_that_touch_overlap() -> None:
    assert said(A, graded("d", 0.8, 0.6, 0.9))[0][0] is None


def test_a_best_one_with_errors_says_so() -> None:
    [(best, sentence)] = said(A, graded("d", 0.9, 0.8, 1.0, errors=3))
    assert best == "d"
    assert sentence.endswith("above the others; 3 errors left out")


def test_a_target_without_any_score_is_not_passed_over_in_silence() -> None:
    [(best, sentence)] = said(A, B, graded("dead", None, None, None, errors=10))
    assert best == "b"
    assert sentence.endswith("above the others; no score of dead")


@pytest.mark.parametrize(
    ("graders", "sentence"),
    [
        ([A, graded("d", None, None, None, errors=9)], "right: no best target: only one has scores"),
        ([graded("d", None, None, None), graded("e", None, None, None)], "right: no best target: none has scores"),
        ([A, graded("d", 1.0, None, None)], "right: no best target: one sample has no interval"),
        ([graded("d", 0.1, None, None), B], "right: no best target: one sample has no interval"),
        ([graded(name, 1.0, 0.7, 1.0) for name in "abcde"], "right: a, b, c and 2 more are not distinguishable: their"),
    ],
)
def test_what_cannot_be_told_is_not_told(graders: list[GraderSummary], sentence: str) -> None:
    [(best, found)] = said(*graders)
    assert best is None
    assert found.startswith(sentence)


def test_graders_that_find_the_same_share_a_sentence() -> None:
    others = [one.model_copy(update={"name": name}) for one in (A, B) for name in ("polite", "brief")]
    mixed = [one.model_copy(update={"name": "mixed"}) for one in (B, C)]
    found = sentences(Summary(attempts=10, failed_attempts=0, graders=[A, B, *others, *mixed]))
    assert found == [
        "right, polite and brief: b is best: its 95% interval is above the others",
        "mixed: b and c are not distinguishable: their 95% intervals overlap",
    ]


def test_a_single_target_and_a_run_that_was_stopped_have_no_best() -> None:
    assert said(B) == []
    assert said(A, B, stopped="interrupted after 3 conversations") == []
