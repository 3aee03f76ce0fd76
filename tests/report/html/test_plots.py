from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.html.plots import LONGEST_STRIP, Scale, range_plot, spark, strip
from vivavoce.store.browse.status import SampleStatus

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
    drawn = strip(["pass", "fail", *skipped])
    assert (len(drawn.strokes), drawn.more) == (LONGEST_STRIP, 2)
    assert drawn.label.startswith("Turns: 1 pass, 2 fail, 3 skipped")
    assert drawn.label.endswith("and 2 more")


@given(st.lists(SHARE, min_size=2, max_size=10))
def test_a_line_stays_in_its_frame_and_ends_with_the_last_mean(means: list[float]) -> None:
    line = spark(means)
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.points.split()]
    assert points[-1] == line.end
    assert all(0 <= x <= 92 and 0 <= y <= 26 for x, y in points)


def test_one_run_is_no_line() -> None:
    assert spark([0.5]) is None
