"""Plots: positions of lines and points in an SVG; the templates draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vivavoce.report.html.score_notes import WORDS
from vivavoce.report.html.wording import score
from vivavoce.store.browse.status import SampleStatus

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
        shown = [tenth for tenth in tenths if (round(self.high * 10) - tenth) % step == 0]
        return [(self.at(tenth / 10), f"{tenth / 10:g}".removeprefix("0") or "0") for tenth in shown]


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
    shown = states[:LONGEST_STRIP]
    listed = ", ".join(f"{turn} {WORDS[state].lower()}" for turn, state in enumerate(shown, 1))
    more = len(states) - len(shown)
    label = f"Turns: {listed}" + (f", and {more} more" if more else "")
    return Strip([(STEP * (i + 0.5), one) for i, one in enumerate(shown)], STEP * len(shown), more, label)


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
