"""Rates of several groups, each against the others that are alike: which groups depart from them beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from vivavoce.plugins import lazy
from vivavoce.stats.intervals import Estimate, share_interval

if TYPE_CHECKING:  # numpy takes a tenth of a second, and most readers of a type of this module test no groups
    from vivavoce.stats.resampling import Exchange

RATE = 0.05
"""The part of the groups that are said to differ which may be wrong, on average: the false-discovery rate."""


class Cell(NamedTuple):
    """The trials of one sample that belong to the same groups: how many passed, and how many there are."""

    groups: frozenset[str]
    passed: int
    tries: int


Sample: TypeAlias = tuple[Cell, ...]
"""The cells of one sample. A sample whose trials are all in the same groups has one."""


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """The rate of a group less that of the others that are alike, with its interval and p value.

    `q_value` is the least false-discovery rate at which the group is among those that differ. It `differs` from the
    others beyond chance where that is at most `RATE` and the interval excludes zero.
    """

    difference: float
    low: float
    high: float
    p_value: float
    q_value: float
    differs: bool


def group_differences(
    samples: Mapping[Sample, int], level: float = 0.95, among: Sequence[str] | None = None
) -> dict[str, GroupDifference | None]:
    """Return how each group differs from the others that are alike; `samples` says how many samples have given cells.

    Only the groups `among` the named ones are tested, all unless given. A difference is None where the group or the
    others have less than two samples.

    Each group is tested by exchange of samples with all others together (see `Exchange.p_value`). The p values of all
    groups are adjusted together (see `adjust_p_values`). While a group differs, the one with the lowest p value leaves
    the others, and the rest are tested again without it: one bad group makes no good one differ. Two groups that are
    left are only compared with each other. Samples that have trials inside a group and outside of it are exchanged
    within the sample.

    The interval combines the score intervals of the two rates (see `share_interval`) by squaring and adding their
    distances from the rates, less what samples on both sides have in common. It holds zero where the p value is above
    1 - `level`.

    Source: G. Y. Zou and A. Donner, Construction of Confidence Limits about Effect Measures, Statistics in Medicine 27
    (2008); for samples on both sides R. G. Newcombe, Improved Confidence Intervals for the Difference between Binomial
    Proportions Based on Paired Data, Statistics in Medicine 17 (1998), method 10.
    """
    names = sorted({name for sample in samples for cell in sample for name in cell.groups})
    names = [name for name in names if among is None or name in among]
    departed: set[str] = set()
    while True:
        sides = {name: _Sides.of(name, samples, departed - {name}) for name in names}
        compared = {name: side for name, side in sides.items() if side.comparable}
        p_values = [side.exchange().p_value() for side in compared.values()]
        q_values = adjust_p_values(p_values)
        differences = {
            name: side.difference(p, q, level)
            for (name, side), p, q in zip(compared.items(), p_values, q_values, strict=True)
        }
        alike = [name for name in names if name not in departed]
        worst = [name for name in alike if name in differences and differences[name].differs]
        if not worst or len(alike) <= 2:
            return {name: differences.get(name) for name in names}
        departed.add(min(worst, key=lambda name: (differences[name].p_value, -abs(differences[name].difference))))


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted so that those up to a rate are wrong in at most that part of the cases, on average.

    Source: Y. Benjamini and Y. Hochberg, Controlling the False Discovery Rate, JRSS B 57 (1995); it holds for tests
    that depend on each other positively.
    """
    number = len(p_values)
    order = sorted(range(number), key=lambda place: p_values[place], reverse=True)
    q_values, least = [1.0] * number, 1.0
    for rank, place in zip(range(number, 0, -1), order, strict=True):
        least = min(least, p_values[place] * number / rank)
        q_values[place] = least
    return q_values


@dataclass(frozen=True, slots=True)
class _Sides:
    """Samples by what passed of what was tried: only inside a group, only outside of it, and with cells on both."""

    inside: Counter[tuple[int, int]]
    outside: Counter[tuple[int, int]]
    both: Counter[tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]]

    @classmethod
    def of(cls, name: str, samples: Mapping[Sample, int], departed: set[str]) -> _Sides:
        """Return the sides of a group; cells of groups that departed are on neither."""
        sides = cls(Counter(), Counter(), Counter())
        for sample, number in samples.items():
            cells = [cell for cell in sample if cell.tries]
            inside = [(cell.passed, cell.tries) for cell in cells if name in cell.groups]
            outside = [
                (cell.passed, cell.tries)
                for cell in cells
                if name not in cell.groups and departed.isdisjoint(cell.groups)
            ]
            if inside and outside:
                sides.both[tuple(inside), tuple(outside)] += number
            elif inside:
                sides.inside[_sum(inside)] += number
            elif outside:
                sides.outside[_sum(outside)] += number
        return sides

    @property
    def comparable(self) -> bool:
        """Whether both sides have two samples."""
        both = sum(self.both.values())
        return min(sum(self.inside.values()), sum(self.outside.values())) + both >= 2

    def exchange(self) -> Exchange:
        """Return the units of the test: residuals of samples, and of the cells of those on both sides."""
        group, other = self._rates()
        tries = group[1] + other[1]
        rate = (group[0] + other[0]) / tries

        def residual(cell: tuple[int, int]) -> float:
            return round(cell[0] - rate * cell[1], 9)

        def residuals(counts: Counter[tuple[int, int]]) -> Counter[float]:
            totals: Counter[float] = Counter()
            for cell, number in counts.items():
                totals[residual(cell)] += number
            return totals

        strata: Counter[tuple[tuple[float, ...], int]] = Counter()
        for (inside, outside), number in self.both.items():
            strata[tuple(map(residual, (*inside, *outside))), len(inside)] += number
        exchange = lazy("vivavoce.stats.resampling:Exchange")
        return exchange(residuals(self.inside), residuals(self.outside), strata)

    def difference(self, p_value: float, q_value: float, level: float) -> GroupDifference:
        """Return the difference of the rates, for a p value and its adjusted one."""
        group, other = share_interval(self._counts(0), level), share_interval(self._counts(1), level)
        assert group is not None
        assert other is not None
        common = self._correlation(group, other)
        difference = group.mean - other.mean
        low = difference - _combine(_down(group), _up(other), common)
        high = difference + _combine(_up(group), _down(other), common)
        low, high = agreeing(max(-1.0, low), min(1.0, high), p_value, level)
        differs = q_value <= RATE and not low <= 0 <= high
        return GroupDifference(difference, low, high, p_value, q_value, differs)

    def _counts(self, side: int) -> Counter[tuple[int, int]]:
        counts = Counter((self.inside, self.outside)[side])
        for cells, number in self.both.items():
            counts[_sum(cells[side])] += number
        return counts

    def _rates(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return what passed and what was tried on each side."""
        group, other = (
            _sum([(passed * number, tries * number) for (passed, tries), number in self._counts(side).items()])
            for side in (0, 1)
        )
        return group, other

    def _correlation(self, group: Estimate, other: Estimate) -> float:
        """Return how far the two rates move together, from the residuals of the samples on both sides.

        Half a sample less is taken to go along, as Newcombe corrects it for continuity.
        """
        if not self.both:
            return 0.0
        shared = tries = 0.0
        for (inside, outside), number in self.both.items():
            (p, n), (q, m) = _sum(inside), _sum(outside)
            shared += number * (p - group.mean * n) * (q - other.mean * m)
            tries += number * n * m
        if shared > 0:
            shared = max(0.0, shared - tries / min(group.clusters, other.clusters) / 2)
        spread = _squares(self._counts(0), group.mean) * _squares(self._counts(1), other.mean)
        return max(-1.0, min(1.0, shared / math.sqrt(spread))) if spread > 0 else 0.0


def agreeing(low: float, high: float, p_value: float, level: float) -> tuple[float, float]:
    """Return an interval that holds zero where the p value says that zero is possible."""
    return (min(low, 0.0), max(high, 0.0)) if p_value > 1 - level + 1e-9 else (low, high)


def _sum(cells: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(passed for passed, _ in cells), sum(tries for _, tries in cells)


def _squares(counts: Counter[tuple[int, int]], mean: float) -> float:
    return math.fsum(number * (passed - mean * tries) ** 2 for (passed, tries), number in counts.items())


def _down(rate: Estimate) -> float:
    return 0.0 if rate.low is None else rate.mean - rate.low


def _up(rate: Estimate) -> float:
    return 0.0 if rate.high is None else rate.high - rate.mean


def _combine(first: float, second: float, common: float) -> float:
    return math.sqrt(max(0.0, first * first + second * second - 2 * common * first * second))
