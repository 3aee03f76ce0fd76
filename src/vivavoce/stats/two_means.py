"""Means of two independent groups: how far apart they are, and whether chance explains it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.groups import agreeing
from vivavoce.stats.intervals import mean_interval, t_quantile
from vivavoce.stats.resampling import Bools, Floats, p_values

UNBOUNDED = (-math.inf, math.inf)

_ROUNDING = 1e-12

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of one group less that of another; `low` and `high` are None where nothing can be said."""

    difference: float
    low: float | None
    high: float | None
    p_value: float | None

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside the interval; there is none where no value varies."""
        return self.low is None or self.high is None or not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Group:
    """Values of one group, and for each the sample that it came from; those of one sample are not independent."""

    values: Sequence[float]
    clusters: Sequence[Hashable]


def mean_difference(
    first: Group, second: Group, level: float = 0.95, bounds: Bounds = UNBOUNDED
) -> MeanDifference | None:
    """Return how much higher the mean of `first` is than that of `second`, None where a group is empty.

    `bounds` is the range that the values can take. See `mean_differences`.
    """
    values = np.array([*first.values, *second.values], dtype=np.float64)[:, None]
    is_one = np.arange(len(values)) < len(first.values)
    (difference,) = mean_differences(values, [*first.clusters, *second.clusters], is_one, [bounds], level)
    return difference


def mean_differences(
    values: Floats, clusters: Sequence[Hashable], is_one: Bools, bounds: Sequence[Bounds], level: float = 0.95
) -> list[MeanDifference | None]:
    """Return for each column how much higher its mean is in rows of `is_one`, None where one side has no value.

    A row is one unit of observation and `clusters` names the sample that it came from; NaN is not known. `bounds` is
    the range that the values of each column can take. Fewer than two samples on a side give neither interval nor
    p value.

    The p value is that of a permutation test: the means of samples change sides at random (see `exchange.p_values`). It
    is exact for sides that are alike, however unequal their sizes are and though one of them may not vary at all.

    The interval of values with bounds combines the score intervals of both means (see `mean_interval`) by squaring and
    adding their distances from the means. Without bounds it is Student's t over the larger of two standard errors: that
    of both cluster-robust variances with the degrees of freedom of Welch, and that of the pooled variance. It holds
    zero where the p value is above 1 - `level`.

    Source: E. J. G. Pitman, Significance Tests Which May be Applied to Samples from any Populations, Supplement to the
    Journal of the Royal Statistical Society 4 (1937); G. Y. Zou and A. Donner, Construction of Confidence Limits about
    Effect Measures, Statistics in Medicine 27 (2008); B. L. Welch, The Generalization of Student's Problem when Several
    Different Population Variances are Involved, Biometrika 34 (1947).
    """
    units, of_one = _units(clusters, is_one)
    sums, counts = (_by_unit(each, units, len(of_one)) for each in (np.nan_to_num(values), ~np.isnan(values)))
    with np.errstate(invalid="ignore"):  # a unit without a value of a column
        p_of_all = p_values(sums / counts, of_one)
    differences: list[MeanDifference | None] = []
    for column, (p_value, limits) in enumerate(zip(p_of_all, bounds, strict=True)):
        known = ~np.isnan(values[:, column])
        sides = [known & is_one, known & ~is_one]
        if not all(side.any() for side in sides):
            differences.append(None)
            continue
        means = [float(values[side, column].mean()) for side in sides]
        difference = means[0] - means[1]
        few = min(len(np.unique(units[side])) for side in sides) < 2
        if few:
            differences.append(MeanDifference(difference, None, None, None))
            continue
        ends = (
            _t_interval(sums[:, column], counts[:, column], of_one, level)
            if math.isinf(limits[0]) or math.isinf(limits[1])
            else _score_interval([(values[side, column], units[side]) for side in sides], level, limits)
        )
        if ends is None:
            differences.append(MeanDifference(difference, None, None, p_value))
            continue
        low, high = agreeing(difference - ends[0], difference + ends[1], p_value, level)
        differences.append(MeanDifference(difference, low, high, p_value))
    return differences


def _units(clusters: Sequence[Hashable], is_one: Bools) -> tuple[NDArray[np.intp], Bools]:
    """Return the number of the unit of each row, a sample on one side, and for each unit whether it is on side one."""
    numbers: dict[tuple[Hashable, bool], int] = {}
    keys = zip(clusters, is_one.tolist(), strict=True)
    units = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
    return units, np.array([side for _, side in numbers], dtype=np.bool_)


def _by_unit(values: Floats | Bools, units: NDArray[np.intp], number: int) -> Floats:
    columns = [np.bincount(units, weights=column, minlength=number) for column in values.T]
    return np.array(columns, dtype=np.float64).T


def _score_interval(
    sides: Sequence[tuple[Floats, NDArray[np.intp]]], level: float, bounds: Bounds
) -> tuple[float, float] | None:
    """Return how far the ends of the interval are below and above the difference, for values with bounds."""
    first, second = (mean_interval(side.tolist(), units.tolist(), level, bounds) for side, units in sides)
    if first is None or second is None or None in (first.low, first.high, second.low, second.high):
        return None
    below, above = ((each.mean - (each.low or 0.0), (each.high or 0.0) - each.mean) for each in (first, second))
    return math.hypot(below[0], above[1]), math.hypot(below[1], above[0])


def _t_interval(sums: Floats, counts: Floats, of_one: Bools, level: float) -> tuple[float, float] | None:
    """Return how far the ends of the interval are below and above the difference, for values without bounds."""
    spreads: list[tuple[float, int]] = []
    largest = 0.0
    for side in (of_one, ~of_one):
        side = side & (counts > 0)
        total, groups = counts[side].sum(), int(side.sum())
        mean = sums[side].sum() / total
        largest = max(largest, abs(float(mean)))
        scaled = (sums[side] - mean * counts[side]) * groups / total
        spreads.append((float((scaled**2).sum()), groups))
    (a, n), (b, m) = spreads
    var_a, var_b = a / (n - 1) / n, b / (m - 1) / m
    pooled = (a + b) / (n + m - 2) * (1 / n + 1 / m)
    if math.sqrt(max(var_a + var_b, pooled)) <= _ROUNDING * max(1.0, largest):
        return None
    if pooled >= var_a + var_b:
        half = math.sqrt(pooled) * t_quantile((1 + level) / 2, n + m - 2)
    else:
        freedom = (var_a + var_b) ** 2 / (var_a**2 / (n - 1) + var_b**2 / (m - 1))
        half = math.sqrt(var_a + var_b) * t_quantile((1 + level) / 2, max(1, math.floor(freedom)))
    return half, half
