"""Plots: positions of lines, points, and bands in an SVG; the templates draw them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.comparison.changes import Change, Difference, Kind
from vivavoce.report.html.plots import (
    LETTERS,
    LONGEST_STRIP,
    Axis,
    Point,
    Scale,
    letters,
    range_plot,
    spark,
    strip,
    trend_plot,
)
from vivavoce.store.runs.rows import SampleStatus

SHARE = st.floats(0, 1)


@given(st.lists(SHARE))
def test_an_axis_shows_every_value_and_ends_at_1(values: list[float]) -> None:
    scale = Scale.around(values)
    assert all(scale.low <= value + 1e-9 for value in values)
    assert scale.ticks[-1] == (100.0, "1")
    assert len(scale.ticks) >= 3
    assert all(0 <= scale.at(value) <= 100 for value in values)


def test_a_mean_stands_where_the_axis_says() -> None:
    plot = range_plot(Scale(0.5), 0.75, 0.6, 0.9, bad=True)
    assert plot is not None
    assert (plot.low, plot.mean, plot.high, plot.bad) == (20.0, 50.0, 80.0, True)
    assert plot.label == "0.750, 95% interval 0.60 to 0.90"


def test_without_a_mean_there_is_no_plot_and_without_an_interval_only_a_point() -> None:
    assert range_plot(Scale(), None, None, None) is None
    plot = range_plot(Scale(), 0.5, None, None)
    assert plot is not None
    assert (plot.low, plot.label) == (None, "0.500, no interval")


def test_a_strip_counts_the_turns_that_it_does_not_draw() -> None:
    skipped: list[SampleStatus] = ["skip"] * LONGEST_STRIP
    strip_plot = strip(["pass", "fail", *skipped])
    assert (len(strip_plot.strokes), strip_plot.more) == (LONGEST_STRIP, 2)
    assert strip_plot.label.startswith("Turns: 1 pass, 2 fail, 3 skipped")
    assert strip_plot.label.endswith("and 2 more")


@given(st.lists(SHARE, min_size=2, max_size=10))
def test_a_line_stays_in_its_frame_and_ends_with_the_last_mean(means: list[float]) -> None:
    line = spark(means)
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.points.split()]
    assert points[-1] == line.end
    assert all(0 <= x <= 92 and 0 <= y <= 26 for x, y in points)


def test_one_run_is_no_line() -> None:
    assert spark([0.5]) is None


def point(number: int, mean: float | None = 0.8, *kinds: Kind, half: float | None = 0.1, **more: object) -> Point:
    ends = (None, None) if mean is None or half is None else (mean - half, mean + half)
    changes = [Change(kind=kind, differences=[Difference(name="model", before="a", after="b")]) for kind in kinds]
    known = Point(
        run=f"r{number}",
        started_at=1.7e9 + 86_400 * number,
        status="finished",
        version="1",
        mean=mean,
        low=ends[0],
        high=ends[1],
        changes=changes,
    )
    return known.model_copy(update=more)


def kinds(points: Sequence[Point]) -> list[str]:
    return [mark.kind for mark in trend_plot(points).marks]


def test_the_axis_shows_every_end_and_has_few_lines() -> None:
    axis = Axis.around([point(0, 0.62), point(1, 0.8, gate=0.95)], 10, 110)
    assert [text for _, text in axis.ticks] == ["0.50", "0.60", "0.70", "0.80", "0.90", "1.00"]
    assert (axis.at(0.5), axis.at(1.0)) == (110, 10)


@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0])
def test_one_score_without_an_interval_has_an_axis(mean: float) -> None:
    plot = trend_plot([point(0, mean, half=None)])
    assert plot.axis.low < plot.axis.high
    assert plot.axis.high <= 1.0 + 1e-9 or mean == 1.0
    assert plot.axis.top <= plot.marks[0].y <= plot.axis.bottom


def test_a_line_ends_where_a_score_is_missing_or_the_rules_change() -> None:
    points = [point(0), point(1), point(2, None, errors=1), point(3), point(4), point(5, breaks=True), point(6)]
    plot = trend_plot(points)
    assert len(plot.lines) == len(plot.bands) == 3
    assert [mark.kind for mark in plot.marks] == ["dot", "dot", "gap", "dot", "dot", "dot", "dot"]
    assert plot.whiskers == []


def test_a_mean_that_stands_alone_has_whiskers() -> None:
    plot = trend_plot([point(0), point(1, None), point(2), point(3, half=None, breaks=True)])
    assert (len(plot.whiskers), plot.lines) == (2, [])


def test_marks_tell_what_a_run_came_to() -> None:
    points = [point(0, failed=True), point(1, stopped="interrupted"), point(2, None, status="running")]
    assert kinds(points) == ["bad", "part", "wait"]
    assert [mark.label for mark in trend_plot(points).marks] == [
        "r0: 0.800, 0.70 to 0.90, the gate failed",
        "r1: 0.800, 0.70 to 0.90, stopped early",
        "r2: still running",
    ]


def test_flags_are_lettered_and_other_rules_stand_between_two_runs() -> None:
    plot = trend_plot([point(0), point(1, 0.8, "target"), point(2), point(3, 0.8, "metric", breaks=True), point(4)])
    first, other = plot.flags
    assert (first.letter, first.double, first.x) == ("a", False, plot.marks[1].x)
    assert (other.letter, other.double) == ("b", True)
    assert plot.marks[2].x < other.x < plot.marks[3].x


def test_flags_close_to_each_other_stand_in_rows() -> None:
    changed: Sequence[Kind] = ("target",)
    plot = trend_plot([point(number, 0.8, *(changed if number in (30, 31, 32) else ())) for number in range(60)])
    assert [flag.level for flag in plot.flags] == [0, 1, 2]


def test_where_everything_changes_only_other_rules_keep_their_letters() -> None:
    plot = trend_plot([point(n, 0.8, "metric" if n == 9 else "version") for n in range(LETTERS + 4)])
    assert [flag.letter for flag in plot.flags if flag.lettered] == ["j"]
    assert list(letters([point(n, 0.8, "version") for n in range(28)]).values())[-3:] == ["z", "aa", "ab"]


def test_runs_of_one_day_are_told_by_the_clock() -> None:
    same_day = trend_plot([point(0, started_at=1.7e9 + 60 * n) for n in range(3)]).dates
    assert all(":" in text for _, text in same_day)
    assert not any(":" in text for _, text in trend_plot([point(n) for n in range(60)]).dates)
    assert len(trend_plot([point(n) for n in range(60)]).dates) <= 7


def test_without_any_score_there_is_a_plot_all_the_same() -> None:
    plot = trend_plot([point(0, None), point(1, None)])
    assert (plot.lines, plot.bands, plot.last, plot.gate) == ([], [], None, None)
    assert kinds([point(0, None)]) == ["gap"]
