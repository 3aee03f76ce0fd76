from __future__ import annotations

import pytest

from vivavoce.features.trends.trends import step_between
from vivavoce.report.html.plots import Point


def point(mean: float | None, low: float | None = None, high: float | None = None) -> Point:
    return Point(run="r", started_at=1.0, status="finished", version="", mean=mean, low=low, high=high, changes=[])


def test_a_step_has_the_interval_of_two_independent_means() -> None:
    step = step_between(point(0.5, 0.47, 0.54), point(0.6, 0.56, 0.63))
    assert step is not None
    assert step.difference == pytest.approx(0.1)
    assert step.low == pytest.approx(0.1 - (0.04**2 + 0.04**2) ** 0.5)
    assert step.high == pytest.approx(0.1 + (0.03**2 + 0.03**2) ** 0.5)
    assert step.sure


def test_a_step_within_the_spread_is_not_sure() -> None:
    step = step_between(point(0.5, 0.4, 0.6), point(0.55, 0.45, 0.65))
    assert step is not None
    assert not step.sure


def test_without_an_interval_nothing_tells_how_sure_a_step_is() -> None:
    step = step_between(point(0.5), point(0.9, 0.8, 1.0))
    assert step is not None
    assert (step.low, step.high, step.sure) == (None, None, False)
    assert step_between(point(None), point(0.9)) is None
    assert step_between(point(0.9), point(None)) is None


@pytest.mark.parametrize(
    ("known", "word"),
    [
        ({"status": "running"}, "still running"),
        ({"errors": 3, "skipped": 1}, "error, no score"),
        ({"skipped": 1}, "all skipped"),
        ({}, "not graded"),
    ],
)
def test_a_run_without_a_score_says_why(known: dict[str, object], word: str) -> None:
    assert point(None).model_copy(update=known).why_unscored == word
