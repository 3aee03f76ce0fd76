"""Plots: positions of lines, points, and bands in an SVG; the templates draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.records.details import MeasurementSummary
from vivavoce.records.run import Status, Verdict
from vivavoce.report.comparison.changes import Change
from vivavoce.report.details import measured_text
from vivavoce.report.html.score_notes import WORDS
from vivavoce.report.text import clock, one_line, score
from vivavoce.store.runs.rows import SampleStatus

STEP = 15
"""Pixels that a turn takes in a strip."""
LONGEST_STRIP = 24
"""Turns of a strip; for a longer conversation the first turns are drawn and the rest is counted."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, with a tick at each tenth or each fifth."""

    low: float = 0.0
    high: float = 1.0

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """Return the axis of scores that shows all of some values and ends at full tenths."""
        low = math.floor(min(values, default=0.0) * 10 + 1e-9) / 10
        return cls(min(max(low, 0.0), 0.5), 1.0)

    def at(self, value: float) -> float:
        """Return the position of a value, in percent of the width."""
        return round(100 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The positions of the ticks, in percent, each with its number."""
        step = 1 if self.high - self.low <= 0.5 + 1e-9 else 2
        tenths = range(round(self.low * 10), round(self.high * 10) + 1)
        tick_tenths = [tenth for tenth in tenths if (round(self.high * 10) - tenth) % step == 0]
        return [(self.at(tenth / 10), f"{tenth / 10:g}".removeprefix("0") or "0") for tenth in tick_tenths]


@dataclass(frozen=True, slots=True)
class Range:
    """A mean with its 95% interval, in percent of the width; without an interval there is only the point."""

    mean: float
    low: float | None
    high: float | None
    bad: bool
    provisional: bool
    label: str


def range_plot(
    scale: Scale,
    mean: float | None,
    low: float | None,
    high: float | None,
    *,
    bad: bool = False,
    provisional: bool = False,
) -> Range | None:
    """Return a mean with its interval on an axis, None if there is no mean."""
    if mean is None:
        return None
    known = low is not None and high is not None
    label = score(mean, 3) + (f", 95% interval {score(low)} to {score(high)}" if known else ", no interval")
    ends = (scale.at(low), scale.at(high)) if low is not None and high is not None else (None, None)
    return Range(scale.at(mean), *ends, bad, provisional, label)


@dataclass(frozen=True, slots=True)
class Strip:
    """One stroke for each turn: the middle of each, in pixels, and its state; `more` turns are not drawn."""

    strokes: list[tuple[float, SampleStatus]]
    width: int
    more: int
    label: str


def strip(states: Sequence[SampleStatus]) -> Strip:
    """Return the strip of a conversation."""
    visible_states = states[:LONGEST_STRIP]
    text = ", ".join(f"{turn} {WORDS[state].lower()}" for turn, state in enumerate(visible_states, 1))
    more = len(states) - len(visible_states)
    label = f"Turns: {text}" + (f", and {more} more" if more else "")
    return Strip(
        [(STEP * (i + 0.5), state) for i, state in enumerate(visible_states)], STEP * len(visible_states), more, label
    )


@dataclass(frozen=True, slots=True)
class Spark:
    """The line of the last means; `points` are those of a polyline, `end` is the position of the last one."""

    points: str
    end: tuple[float, float]
    label: str


def spark(means: Sequence[float], width: int = 92, height: int = 26) -> Spark | None:
    """Return the line through means between 0 and 1, oldest first, None if there are fewer than two."""
    if len(means) < 2:
        return None
    low = min(*means, 0.9)
    step = (width - 4) / (len(means) - 1)
    tall = height - 8
    places = [
        (round(2 + i * step, 1), round(4 + tall * (1 - (mean - low) / ((1 - low) or 1)), 1))
        for i, mean in enumerate(means)
    ]
    label = f"Mean of the last {len(means)} runs of this suite: {', '.join(score(mean) for mean in means)}"
    return Spark(" ".join(f"{x},{y}" for x, y in places), places[-1], label)


STEPS = (0.02, 0.05, 0.1, 0.2)
"""What may lie between two lines of the axis."""
LEVELS = 3
"""Rows of flags, so that flags close to each other do not cover each other."""
APART = 6.5
"""Percent of the width between two flags in a row, at least."""
TOP, BOTTOM, ROW = 18, 326, 24
"""Where the scores begin and end, below as many rows of flags as there are, in pixels."""
LETTERS = 26
"""Flags that are lettered in the plot; if there are more, only those that interrupt the line are lettered."""
DATES = 7
"""Dates below the axis, at most."""

Dot = Literal["dot", "bad", "part", "gap", "wait"]


class Step(BaseModel):
    """A mean minus that of the run `since`, with the 95% interval, None if one of the two has none."""

    model_config = ConfigDict(frozen=True)

    since: str
    difference: float
    low: float | None = None
    high: float | None = None

    @property
    def sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class Point(BaseModel):
    """A run, an hour, or a turn in the plot; without a `mean` it has no score, and `stopped` may say why.

    `low` and `high` are the 95% interval of the mean, `gate` the mean from which on the gate lets it pass, where the
    suite says so, and `failed` that the gate did not. `breaks` marks a run whose scores are not comparable with earlier
    ones: the grader changed, or that is unknown. `step` is that from the last run with a score. `changes` are those
    since the run before. `tester_errors`, the rates of passing and `population` are those of the summary.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    started_at: float
    status: Status
    version: str
    verdict: Verdict | None = None
    target: str | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    scored: int = 0
    errors: int = 0
    skipped: int = 0
    tester_errors: int = 0
    pass_rate: float | None = None
    raw_pass_rate: float | None = None
    highest_pass_rate: float | None = None
    population: int | None = None
    measured: MeasurementSummary | None = None
    stopped: str | None = None
    gate: float | None = None
    failed: bool = False
    breaks: bool = False
    step: Step | None = None
    changes: list[Change]

    @property
    def why_unscored(self) -> str:
        """Why it has no mean, in a word or two."""
        if self.status == "running":
            return "still running"
        if self.measured is not None:
            return f"measured {measured_text(self.measured.mean)}"
        if self.errors:
            return "error, no score"
        return "all skipped" if self.skipped else "not graded"


@dataclass(frozen=True, slots=True)
class Axis:
    """The scores from `low` to `high`, drawn from `bottom` up to `top`."""

    low: float
    high: float
    top: float
    bottom: float

    @classmethod
    def around(cls, points: Iterable[Point], top: float, bottom: float) -> Axis:
        """Return an axis that shows every mean, interval and gate."""
        ends = [end for point in points for end in (point.mean, point.low, point.high, point.gate) if end is not None]
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        step = _step(high - low)
        low = math.floor(low / step + 1e-9) * step
        high = math.ceil(high / step - 1e-9) * step
        return cls(max(low, 0.0), max(min(high, 1.0), low + step), top, bottom)

    def at(self, value: float) -> float:
        """Return the position of a score."""
        return round(self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The positions of the grid lines, each with its score."""
        step = _step(self.high - self.low)
        numbers = range(round(self.low / step), math.floor(self.high / step + 1e-9) + 1)
        return [(self.at(number * step), score(number * step)) for number in numbers]


@dataclass(frozen=True, slots=True)
class Mark:
    """A run in the plot."""

    x: float
    y: float
    kind: Dot
    run: str
    label: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A change; `double` interrupts the line. `letter` is shown if `lettered`, `word` if there is room."""

    x: float
    letter: str
    double: bool
    lettered: bool
    level: int
    word: str
    before: bool
    """Whether the word is placed before the flag."""


@dataclass(frozen=True, slots=True)
class TrendPlot:
    """What is drawn: bands and lines as paths, whiskers for means that stand alone, marks, flags, dates and the gate.

    `last` is the position and text of the newest mean, and whether the gate failed.
    """

    axis: Axis
    bands: list[str]
    lines: list[str]
    whiskers: list[tuple[float, float, float]]
    marks: list[Mark]
    flags: list[Flag]
    dates: list[tuple[float, str]]
    gate: tuple[float, str] | None
    last: tuple[float, float, str, bool] | None


def trend_plot(points: Sequence[Point], axis: Axis | None = None) -> TrendPlot:
    """Return the plot of a trend, 380 pixels high; several small plots can share one axis."""
    places = [_across(number, len(points)) for number in range(len(points))]
    flags = list(_flags(places, points))
    rows = 1 + max((flag.level for flag in flags if flag.lettered), default=-1)
    axis = axis or Axis.around(points, TOP + ROW * rows, BOTTOM)
    marks = [_mark(axis, x, point) for x, point in zip(places, points, strict=True)]
    stretches = list(_stretches(list(zip(places, points, strict=True))))
    gate = next((point.gate for point in reversed(points) if point.gate is not None), None)
    newest = next((mark for mark in reversed(marks) if mark.kind in ("dot", "bad", "part")), None)
    mean = next((point.mean for point in reversed(points) if point.mean is not None), None)
    return TrendPlot(
        axis=axis,
        bands=[band for stretch in stretches for band in _bands(axis, stretch)],
        lines=[
            _path((x, axis.at(point.mean or 0.0)) for x, point in stretch) for stretch in stretches if len(stretch) > 1
        ],
        whiskers=[whisker for stretch in stretches if (whisker := _whisker(axis, stretch)) is not None],
        marks=marks,
        flags=flags,
        dates=list(_dates(places, points)),
        gate=None if gate is None else (axis.at(gate), score(gate)),
        last=None if newest is None else (newest.x, newest.y, score(mean), newest.kind == "bad"),
    )


def letters(points: Sequence[Point]) -> dict[str, str]:
    """Return the letters of the runs at which something changed, oldest first: a to z, then aa."""
    changed = [point.run for point in points if point.changes]
    return {run: _letter(number) for number, run in enumerate(changed)}


def _step(span: float) -> float:
    return next((step for step in STEPS if span / step <= 6 + 1e-9), STEPS[-1])


def _across(number: int, of: int) -> float:
    return 50.0 if of == 1 else round(0.6 + 98.8 * number / (of - 1), 2)


def _mark(axis: Axis, x: float, point: Point) -> Mark:
    name = one_line(point.run, 60)
    if point.mean is None:
        kind: Dot = "wait" if point.status == "running" else "gap"
        return Mark(x, axis.bottom + 8, kind, point.run, f"{name}: {point.why_unscored}")
    known = "no interval" if point.low is None or point.high is None else f"{score(point.low)} to {score(point.high)}"
    below = ", the gate failed" if point.failed else ""
    partly = ", stopped early" if point.stopped else ""
    kind = "bad" if point.failed else "part" if point.stopped else "dot"
    label = f"{name}: {score(point.mean, 3)}, {known}{below}{partly}"
    return Mark(x, axis.at(point.mean), kind, point.run, label)


def _stretches(placed: Sequence[tuple[float, Point]]) -> Iterator[list[tuple[float, Point]]]:
    """Yield the runs that one line goes through: a run without a score ends it, and so does a change of the grader."""
    stretch: list[tuple[float, Point]] = []
    for x, point in placed:
        if point.mean is None or point.breaks:
            yield stretch
            stretch = []
        if point.mean is not None:
            stretch.append((x, point))
    yield stretch


def _bands(axis: Axis, stretch: Sequence[tuple[float, Point]]) -> Iterator[str]:
    for known, group in groupby(stretch, lambda place: place[1].low is not None and place[1].high is not None):
        places = [(x, axis.at(point.low or 0.0), axis.at(point.high or 0.0)) for x, point in group]
        if known and len(places) > 1:
            above, below = [(x, high) for x, _, high in places], [(x, low) for x, low, _ in reversed(places)]
            yield f"{_path([*above, *below])}Z"


def _whisker(axis: Axis, stretch: Sequence[tuple[float, Point]]) -> tuple[float, float, float] | None:
    if len(stretch) != 1:
        return None
    (x, point), *_ = stretch
    return None if point.low is None or point.high is None else (x, axis.at(point.high), axis.at(point.low))


def _path(places: Iterable[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{10 * x:.1f} {y:g}" for x, y in places)


def _flags(places: Sequence[float], points: Sequence[Point]) -> Iterator[Flag]:
    letter_by_run = letters(points)
    ends = [-100.0] * LEVELS
    crowded = len(letter_by_run) > LETTERS
    changed = [number for number, point in enumerate(points) if point.changes]
    for at, number in enumerate(changed):
        point = points[number]
        double = any(change.kind == "metric" for change in point.changes)
        x = round((places[number - 1] + places[number]) / 2, 2) if double and number else places[number]
        level = next(
            (candidate for candidate in range(LEVELS) if x - ends[candidate] >= APART),
            min(range(LEVELS), key=ends.__getitem__),
        )
        lettered = double or not crowded
        ends[level] = x if lettered else ends[level]
        following = places[changed[at + 1]] if at + 1 < len(changed) else 100.0
        before = x > 85
        room = (x - places[changed[at - 1]] if at else x) if before else following - x
        word = point.changes[0].brief if room > 13 and not crowded else ""
        yield Flag(x, letter_by_run[point.run], double, lettered, level, word, before)


def _letter(number: int) -> str:
    first, last = divmod(number, 26)
    return (_letter(first - 1) if first else "") + chr(ord("a") + last)


def _dates(places: Sequence[float], points: Sequence[Point]) -> Iterator[tuple[float, str]]:
    """Yield some dates, and the time of day where all runs are of one day."""
    days = {datetime.fromtimestamp(point.started_at).date() for point in points}
    every = max(1, math.ceil((len(points) - 1) / (DATES - 1))) if len(points) > 1 else 1
    previous = ""
    for number in range((len(points) - 1) % every, len(points), every):
        then = datetime.fromtimestamp(points[number].started_at)
        text = f"{then.day} {then:%b}" if len(days) > 1 else clock(points[number].started_at)
        if text != previous:
            yield places[number], text
        previous = text
