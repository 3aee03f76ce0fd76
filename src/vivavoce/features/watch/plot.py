"""The plots of a watch of production: the pass rate of each grader over hours or days, all on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from vivavoce.features.watch.state import Bucket, Period, Rate, Watched
from vivavoce.report.html.plots import Axis, Point, TrendPlot, trend_plot

SMALL_TOP, SMALL_BOTTOM = 8, 62
"""The same in a small plot."""


@dataclass(frozen=True, slots=True)
class RatePlot:
    """The pass rate of a grader over time, and over all of that time."""

    grader: str
    rate: Rate
    plot: TrendPlot


def rate_plots(report: Watched) -> list[RatePlot]:
    """Return a plot for each grader, the first one tall, those with the lowest rate first."""
    order = sorted(report.graders, key=lambda name: (_share(report.total.rates[name]), name))
    points = {name: _points(report, name) for name in order}
    small = Axis.around((point for name in order[1:] for point in points[name]), SMALL_TOP, SMALL_BOTTOM)
    return [
        RatePlot(name, report.total.rates[name], _plot(points[name], small if at else None))
        for at, name in enumerate(order)
    ]


def label_of_period(start: float, per: Bucket) -> str:
    """Return what a period is called, in UTC, which also names its row in the table."""
    moment = datetime.fromtimestamp(start, UTC)
    day = f"{moment.day} {moment:%b}"
    return day if per == "day" else f"{day} {moment:%H:%M}"


def _plot(points: Sequence[Point], axis: Axis | None) -> TrendPlot:
    """Return the plot of some points; a time in which nothing was judged is left open, and is not an error."""
    plot = trend_plot(points, axis)
    return replace(plot, marks=[mark for mark in plot.marks if mark.kind == "dot"], dates=_dates(points))


def _points(report: Watched, grader: str) -> list[Point]:
    return [_point(period, period.rates.get(grader, Rate()), report.per) for period in report.periods]


def _point(period: Period, rate: Rate, per: Bucket) -> Point:
    return Point(
        run=label_of_period(period.start, per),
        started_at=period.start,
        status="finished",
        version="",
        mean=rate.share,
        low=rate.low,
        high=rate.high,
        scored=rate.scored,
        errors=rate.errors,
        skipped=rate.skipped,
        changes=[],
    )


def _dates(points: Sequence[Point]) -> list[tuple[float, str]]:
    """Return some dates below the axis with their places in percent of the width, the first and the last among them."""
    last = len(points) - 1
    some = sorted({round(last * part / 4) for part in range(5)})
    return [(round(0.6 + 98.8 * at / max(1, last), 2), points[at].run) for at in some]


def _share(rate: Rate) -> float:
    return 2.0 if rate.share is None else rate.share
