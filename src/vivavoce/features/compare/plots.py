"""What the page of a comparison shows: the result as sentences, and each difference on one axis through zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vivavoce.features.compare.several import SeveralComparisons
from vivavoce.report.comparison.comparison import (
    WORDS,
    Comparison,
    GraderComparison,
    Reading,
    TargetComparison,
    measured_remarks,
    remarks,
)
from vivavoce.report.html.plots import Range
from vivavoce.report.text import count, join_phrases, one_line
from vivavoce.stats.paired import sign_test

_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_TICKS = 5


@dataclass(frozen=True, slots=True)
class DifferenceScale:
    """An axis for differences of scores, with zero on it and a tick at each `step`."""

    low: float
    high: float
    step: float

    @classmethod
    def around(cls, values: Iterable[float]) -> DifferenceScale:
        """Return the axis that shows all of some values, and at least a step on both sides of zero."""
        known = [0.0, *values]
        least, most = min(known), max(known)
        step = next((step_size for step_size in _STEPS if (most - least) / step_size <= _TICKS), _STEPS[-1])
        below = max(math.ceil(-least / step - 1e-9), 1)
        above = max(math.ceil(most / step - 1e-9), 1)
        return cls(-below * step, above * step, step)

    def at(self, value: float) -> float:
        """Return the position of a difference, in percent of the width."""
        return round(100 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The positions of the ticks, in percent, each with its number."""
        steps = range(round(self.low / self.step), round(self.high / self.step) + 1)
        return [(self.at(step * self.step), _tick(step * self.step)) for step in steps]


@dataclass(frozen=True, slots=True)
class Difference:
    """A grader in the table; `link` leads to its flips."""

    grader: GraderComparison
    reading: Reading
    word: str
    plot: Range | None
    link: str
    is_shown: bool


def scale_of(graders: Sequence[GraderComparison]) -> DifferenceScale:
    """Return the axis that shows every difference with its interval."""
    ends = [end for grader in graders for end in (grader.low, grader.difference, grader.high) if end is not None]
    return DifferenceScale.around(ends)


def difference(grader: GraderComparison, scale: DifferenceScale, link: str, *, is_shown: bool) -> Difference:
    """Return a grader as a row of the table; `shown` means that its flips are on the page."""
    return Difference(grader, grader.reading, _word(grader), _plot(grader, scale), link, is_shown)


def lead(graders: Sequence[GraderComparison], headline: str | None) -> GraderComparison | None:
    """Return the grader whose flips are shown by default: the one that fell most, else the headline, else the first.

    One that is the same on both sides comes before one that may not be.
    """
    worse = [grader for grader in graders if grader.reading == "worse"]
    if worse:
        return min(worse, key=lambda grader: grader.difference or 0.0)
    known = sorted(graders, key=lambda grader: (grader.reading == "incomparable", grader.name != headline))
    return next(iter(known), None)


def format_signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign, or a dash if there is none."""
    return "–" if value is None else f"{value:+.{digits}f}".replace("-", "−")


def finding(target: TargetComparison, comparison: GraderComparison | None) -> str:
    """Return in a few sentences what changed from a to b, how certain that is, and what is unknown."""
    if not target.matched:
        return "The two runs share no sample, so nothing can be compared."
    pairs = count(max((grader.n for grader in target.graders), default=0), "sample")
    if not any(grader.n for grader in target.graders):
        if measured := list(measured_remarks(target.graders)):
            return " ".join(measured)
        return f"No grader has a score on both sides for any of the {count(target.matched, 'common sample')}."
    alike = [grader for grader in target.graders if grader.reading != "incomparable"]
    compared = [grader for grader in alike if grader.reading != "measured"]
    apart = [grader for grader in target.graders if grader.reading == "incomparable"]
    if not any(grader.n for grader in compared):
        return f"{_apart(apart)}, so differences may come from the grader. Grade both runs in the same way first."
    parts = [f"On the {pairs} that both runs scored, {_changes(compared)}."]
    if apart:
        parts.append(f"{_apart(apart)}; these are left out here.")
    if comparison is not None and comparison.n and comparison.reading != "incomparable":
        parts.append(_flips(comparison))
    return " ".join([*parts, *remarks(alike)])


def _apart(graders: Sequence[GraderComparison]) -> str:
    return f"{join_phrases([_name(grader) for grader in graders])} changed between the two runs"


def several_finding(comparisons: SeveralComparisons) -> str:
    """Return in a sentence for each run how it differs from the baseline."""
    return " ".join(f"{letter}{_difference_from_a(comparison)}." for letter, comparison in comparisons.lettered)


def _difference_from_a(comparison: Comparison) -> str:
    graders = [grader for target in comparison.targets for grader in target.graders if grader.reading != "incomparable"]
    if measured := [grader.measured for grader in graders if grader.measured is not None and not grader.n]:
        graders = [grader for grader in graders if grader.reading != "measured"]
        if not graders:
            return f" has no threshold; measured on {count(measured[0].n, 'sample')}"
    if not any(grader.n for grader in graders):
        return " cannot be compared with A"
    phrases = [
        f" is {word} than A on {join_phrases([_name(grader) for grader in mine])}"
        for word in ("worse", "better")
        if (mine := [grader for grader in graders if grader.reading == word])
    ]
    return " and".join(phrases) or " shows no clear change from A"


def uneven(comparison: GraderComparison) -> float:
    """Return the probability that chance splits the flips at least this unevenly: McNemar's exact test."""
    return sign_test(len(comparison.improved), len(comparison.worsened))


def _changes(graders: Sequence[GraderComparison]) -> str:
    phrases = [_change(word, graders) for word in ("worse", "better")]
    sure = " and ".join(phrase for phrase in phrases if phrase)
    if sure:
        return sure
    return "no grader shows a clear change" if len(graders) > 1 else f"{_name(graders[0])} shows no clear change"


def _change(reading: Reading, graders: Sequence[GraderComparison]) -> str:
    mine = [grader for grader in graders if grader.reading == reading]
    mine.sort(key=lambda grader: -abs(grader.difference or 0.0))
    if not mine:
        return ""
    return f"B is {reading} on {join_phrases([_by(grader) for grader in mine])}"


def _by(grader: GraderComparison) -> str:
    ends = sorted((abs(grader.low or 0.0), abs(grader.high or 0.0)))
    return f"{_name(grader)} by {abs(grader.difference or 0.0):.3f} (95% interval {ends[0]:.3f} to {ends[1]:.3f})"


def _flips(comparison: GraderComparison) -> str:
    down, up = len(comparison.worsened), len(comparison.improved)
    if not down + up:
        return f"On {_name(comparison)} no sample went from pass to fail or back."
    moved = f"On {_name(comparison)} {down:,} went from pass to fail and {up:,} the other way"
    return f"{moved}{_share(uneven(comparison))}."


def _share(chance: float) -> str:
    """Return in words how often chance gives such an uneven split, empty if that says nothing."""
    if chance >= 0.4:
        return ", which chance alone would explain"
    often = "less than one time in a thousand" if chance < 0.001 else f"in about 1 of {round(1 / chance)} comparisons"
    return f"; by chance, a split at least this uneven occurs {often}"


def _name(grader: GraderComparison) -> str:
    return one_line(grader.name, 40)


def _word(grader: GraderComparison) -> str:
    return WORDS[grader.reading].capitalize()


def _plot(grader: GraderComparison, scale: DifferenceScale) -> Range | None:
    if grader.difference is None:
        return None
    label = f"Difference {format_signed(grader.difference)}"
    bad = grader.reading == "worse"
    if grader.low is None or grader.high is None:
        return Range(scale.at(grader.difference), None, None, bad, False, f"{label}, no interval")
    label += f", {100 * grader.level:.4g}% interval {format_signed(grader.low)} to {format_signed(grader.high)}"
    return Range(scale.at(grader.difference), scale.at(grader.low), scale.at(grader.high), bad, False, label)


def _tick(value: float) -> str:
    if abs(value) < 1e-9:
        return "0"
    return ("−" if value < 0 else "+") + f"{abs(value):g}".removeprefix("0")
