"""Thresholds chosen on one half of the labels: what is said of them, and where nothing can be chosen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server.pages.cases import keep, outcome
from vivavoce.errors import NotFound, UsageError
from vivavoce.features.calibration.cascade import CascadeReport, cascade_report
from vivavoce.records.label import Calibration, LabelledVerdict
from vivavoce.records.score import Failure, Score, Usage, failed
from vivavoce.report.graded_run import GradedRun
from vivavoce.store.store import Store

DOWN = failed(Failure(blame="judge", kind="connect", message="the judge is down"), settings={"model": "small"})
Says = Callable[[int], Score]


def score(value: float, cost: float | None, **used: int) -> Score:
    usage = Usage(**{"calls": 1, **used}, cost=cost)
    return Score(value=value, passed=value >= 0.5, usage=usage, settings={"model": "judge"})


def good(n: int) -> bool:
    return n % 2 == 0


def sure(n: int) -> Score:
    """Say what is right of two in three, and 0.5 of the others."""
    return score(0.5 if n % 3 == 0 else 0.9 if good(n) else 0.1, 0.1)


def right(n: int) -> Score:
    return score(float(good(n) if n % 20 else not good(n)), 1.0)


def always(_: int) -> float | None:
    return 1.0


def fail(_: int) -> Score:
    return DOWN


def flat(_: int) -> Score:
    return score(0.7, 0.1)


def dear(n: int) -> Score:
    return score(sure(n).value or 0, 1.0)


def guesses(n: int) -> Score:
    return score(0.9 if n % 4 < 2 else 0.1, 0.1)


def build_report(
    store: Store,
    first: Says = sure,
    then: Says = right,
    probability: Callable[[int], float | None] = always,
    n: int = 200,
) -> CascadeReport:
    outcomes = [
        outcome(f"s{number}", grades={"first": first(number), "then": then(number)}, position=number)
        for number in range(n)
    ]
    keep(store, outcomes, fingerprints={"first": "f1", "then": "f2", "twin": "f2"})
    grading = store.grading("run-1")
    labels = [
        LabelledVerdict(
            sample_id=f"s{number}",
            target="bot",
            trial=0,
            good=good(number),
            passed=bool(then(number).passed),
            score=then(number).value or 0.0,
            drawn=probability(number),
        )
        for number in range(n)
        if then(number).passed is not None
    ]
    calibration = Calibration(
        id="cal-1",
        run_id="run-1",
        grading_id=grading.id,
        grader="then",
        fingerprint="f2",
        source="people",
        author="Ida",
        created_at=1.0,
        labels=labels,
    )
    for wrong, error in (("twin", UsageError), ("other", NotFound)):
        with pytest.raises(error):
            cascade_report(GradedRun(store, store.run("run-1"), grading), wrong, calibration)
    return cascade_report(GradedRun(store, store.run("run-1"), grading), "first", calibration)


def test_the_cascade_stands_beside_both_judges_on_the_other_half(store: Store) -> None:
    report = build_report(store)
    assert (report.fails_below, report.passes_from, report.held, report.why) == (0.3, 0.7, True, None)
    assert (report.labels, report.chosen_on + report.reported_on, report.unit) == (200, 200, "cost")
    first, then, cascade = report.rows
    assert [row.name for row in report.rows] == ["first", "then", "cascade"]
    assert (first.asked, first.cost, then.asked, then.cost) == (0.0, pytest.approx(0.1), 1.0, 1.0)
    assert cascade.cost == pytest.approx(0.1 + cascade.asked)
    assert 0.25 < cascade.asked < 0.42
    assert (cascade.accuracy.value or 0) >= (then.accuracy.value or 1)
    assert cascade.accuracy.n == report.reported_on
    assert report.notes == ["on the held-out labels, the agreement of the cascade is within the 95% intervals of then"]


def test_what_the_first_has_no_score_for_goes_on(store: Store) -> None:
    report = build_report(store, lambda n: DOWN if n % 3 == 0 else sure(n))
    assert (report.fails_below, report.passes_from) == (0.3, 0.5)
    assert report.rows[-1].name == "cascade"
    assert 0.25 < report.rows[-1].asked < 0.42
    assert report.rows[0].accuracy.n == pytest.approx(report.reported_on * 2 / 3, abs=12)
    assert report.notes == [
        "first has no score for 67 labelled conversations: then decides these",
        "on the held-out labels, the agreement of the cascade is within the 95% intervals of then",
    ]


def test_an_answer_from_the_cache_costs_what_others_do(store: Store) -> None:
    def cached_score(n: int) -> Score:
        return score(float(good(n)), None, calls=0, cached_calls=1) if n % 2 else right(n)

    report = build_report(store, then=cached_score)
    assert (report.unit, report.rows[0].cost) == ("cost", pytest.approx(0.1))


def test_without_usage_the_cost_is_the_share_that_goes_on(store: Store) -> None:
    report = build_report(store, then=lambda n: right(n).model_copy(update={"usage": None}))
    assert (report.unit, report.rows[0].cost) == ("verdicts", None)
    assert report.rows[-1].cost == pytest.approx(report.rows[-1].asked)
    assert "no usage was recorded" in report.notes[0]


def test_only_drawn_labels_count(store: Store) -> None:
    report = build_report(store, probability=lambda n: 1.0 if n % 2 else None)
    assert report.labels == 100
    assert report.why is not None
    assert report.why.startswith("people fail every conversation used to choose thresholds")
    assert report.notes[0] == "100 labels of conversations that were not randomly sampled: not counted"


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (fail, "first has no score for any labelled conversation"),
        (flat, "first gives 0.7 for every labelled conversation, so no threshold separates"),
        (right, "first and then give the same verdict on every labelled conversation: first alone is enough"),
        (dear, "first costs as much as then: calling it first saves nothing"),
        (guesses, "no thresholds keep the agreement of then for less"),
    ],
)
def test_where_nothing_can_be_chosen_both_judges_stand_alone(store: Store, first: Says, why: str) -> None:
    report = build_report(store, first)
    assert report.why is not None
    assert report.why.startswith(why)
    assert [row.name for row in report.rows] == ["first", "then"]
    assert (report.fails_below, report.passes_from, report.line, report.held) == (None, None, None, None)


def test_few_labels_choose_nothing(store: Store) -> None:
    report = build_report(store, n=3)
    assert (report.why or "").startswith("too few labels, 3: ")
