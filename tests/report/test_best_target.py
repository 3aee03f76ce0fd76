"""Which target is best: only one that is above each other one on the same samples."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vivavoce.records.run import AttemptKey, ScoreRow
from vivavoce.report.best_target import sentences, standings
from vivavoce.run.summary import Summary, summarise
from vivavoce.run.tallies import tally
from vivavoce.stats.paired import difference_of


def rows(target: str, values: Sequence[float | None], grader: str = "right") -> list[ScoreRow]:
    return [
        ScoreRow(
            kind="grade",
            key=AttemptKey(f"s{place}", target, 0),
            name=grader,
            state="error" if value is None else "scored",
            value=value,
            passed=None if value is None else value >= 0.5,
        )
        for place, value in enumerate(values)
    ]


def summary_of(*scores: list[ScoreRow]) -> Summary:
    every = [row for some in scores for row in some]
    return summarise(tally(every), attempts=len(every), failed=0)


def said(*scores: list[ScoreRow], stopped: str | None = None) -> list[tuple[str | None, str]]:
    summary = summary_of(*scores).model_copy(update={"stopped": stopped})
    return list(zip((one.best for one in standings(summary)), sentences(summary), strict=True))


LOW, HIGH = [1.0] * 24 + [0.0] * 16, [1.0] * 34 + [0.0] * 6
"""The intervals of their means overlap, and 10 samples pass with the second only."""
A, B, C = rows("a", LOW), rows("b", HIGH), rows("c", [1.0] * 33 + [0.0] * 7)


def test_the_one_above_all_others_on_the_same_samples_is_best() -> None:
    [(best, sentence)] = said(A, B)
    found = difference_of([high - low for high, low in zip(HIGH, LOW, strict=True)])
    assert found is not None
    assert best == "b"
    assert sentence == (
        f"right: b is best: on the same samples it is 0.250 above a (95% interval {found.low:.3f} … {found.high:.3f})"
    )


def test_one_that_another_may_equal_is_not() -> None:
    assert said(A, B, C) == [(None, "right: no best target: on the same samples c is not clearly below b")]


def test_of_several_the_intervals_hold_together() -> None:
    summary = summary_of(A, B, C)
    assert [(one.target, one.other, one.level) for one in summary.differences] == [("b", "a", 0.975), ("b", "c", 0.975)]
    assert [one.level for one in summary_of(A, B).differences] == [0.95]


def test_a_best_one_with_errors_says_so() -> None:
    [(best, sentence)] = said(A, rows("d", [None] * 3 + HIGH[3:]))
    assert best == "d"
    assert sentence.endswith("; 3 errors left out")


def test_a_target_without_any_score_is_not_passed_over_in_silence() -> None:
    [(best, sentence)] = said(A, B, rows("dead", [None] * 40))
    assert best == "b"
    assert sentence.endswith("; no score of dead")


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([A, rows("d", [None] * 9)], "right: no best target: only one has scores"),
        ([rows("d", [None]), rows("e", [None])], "right: no best target: none has scores"),
        ([rows("d", [1.0]), rows("e", [0.0])], "right: no best target: a single common sample is not"),
        ([rows(name, [1.0] * 9) for name in "abcde"], "right: no best target: on the same samples b, c, d and 1 more"),
    ],
)
def test_what_cannot_be_told_is_not_told(scores: list[list[ScoreRow]], sentence: str) -> None:
    [(best, found)] = said(*scores)
    assert best is None
    assert found.startswith(sentence)


def test_a_summary_without_differences_names_no_best_target() -> None:
    summary = summary_of(A, B).model_copy(update={"differences": []})
    assert sentences(summary) == ["right: no best target: the run does not say how targets differ sample by sample"]


def test_graders_that_find_the_same_share_a_sentence() -> None:
    others = [rows(target, values, "polite") for target, values in (("a", LOW), ("b", HIGH))]
    [sentence] = sentences(summary_of(A, B, *others))
    assert sentence.startswith("right and polite: b is best: ")


def test_a_single_target_and_a_run_that_was_stopped_have_no_best() -> None:
    assert said(B) == []
    assert said(A, B, stopped="interrupted after 3 conversations") == []
