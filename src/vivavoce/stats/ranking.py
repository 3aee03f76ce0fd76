"""How far one order of things agrees with another: Spearman's correlation, and the area under the ROC curve.

The correlation is there for many weightings of a list at once, too, which the bootstrap needs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.intervals import t_quantile, wilson
from vivavoce.stats.resampling import Floats, Weights

Numbers = Sequence[float] | Floats
Bools = Sequence[bool] | NDArray[np.bool_]


def spearman(first: Numbers, second: Numbers) -> float | None:
    """Return the correlation of the ranks of two lists, -1 to 1; None where all values of one side are equal.

    Source: C. Spearman, The Proof and Measurement of Association between Two Things (1904).

    Raises:
        ValueError: one list is longer than the other.
    """
    return _single(spearmans(first, second, np.ones((1, len(first)))))


def spearmans(left: Numbers, right: Numbers, weights: Weights) -> Floats:
    """Return what `spearman` does for each row of weights, NaN for None."""
    _same_length(left, right)
    middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
    first, second = (_Order.of(side).ranks(weights) - middle for side in (left, right))
    return _over(
        (weights * first * second).sum(axis=1),
        np.sqrt((weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1)),
    )


def auroc(values: Numbers, truth: Bools, weights: Numbers | None = None) -> float | None:
    """Return how often a true one has a higher value than a false one, equal ones counting half; None without both.

    0.5 is chance. `weights` says how much each value counts.

    Source: J. A. Hanley and B. J. McNeil, The Meaning and Use of the Area under a ROC Curve (1982).

    Raises:
        ValueError: one list is longer than the other.
    """
    good, w = _sides(values, truth, weights)
    return _influence(_Order.of(values), good, w)[0] if _both(good, w) else None


def auroc_interval(
    values: Numbers,
    truth: Bools,
    clusters: Sequence[Hashable],
    weights: Numbers | None = None,
    level: float = 0.95,
    inflation: float = 1.0,
) -> tuple[float, float] | None:
    """Return the two-sided interval of `auroc`, None where one side is missing or all are of one cluster.

    `clusters` names the sample of each value, and `weights` says how much each counts. The variance is that of DeLong,
    summed by cluster, but at least what Hanley and McNeil give for this area and as many samples: so a perfect order of
    few values is not a certainty. The interval is Wilson's for as many independent tries as give that variance, fewer
    by the squared ratio of normal to Student's quantile. It holds the area that was seen.

    Source: E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Comparing the Areas under Two or More Correlated ROC
    Curves (1988); N. A. Obuchowski, Nonparametric Analysis of Clustered ROC Curve Data (1997); R. G. Newcombe,
    Confidence Intervals for an Effect Size Measure Based on the Mann-Whitney Statistic (2006), method 5.
    """
    good, w = _sides(values, truth, weights)
    numbers: dict[Hashable, int] = {}
    groups = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)
    if len(numbers) < 2 or not _both(good, w):
        return None
    each = [np.bincount(groups, weights=w * side) for side in (good, 1 - good)]
    sizes = [float(shares.sum() ** 2 / (shares**2).sum()) for shares in each]
    seen, influence = _influence(_Order.of(values), good, w)
    pairs = sizes[0] * sizes[1]
    area = (seen * pairs + 0.5) / (pairs + 1)
    summed = float((np.bincount(groups, weights=influence) ** 2).sum()) * len(numbers) / (len(numbers) - 1)
    beyond = sum(sizes) / 2 - 1
    least = area * (1 - area) * (1 + beyond * ((1 - area) / (2 - area) + area / (1 + area))) / pairs
    shrink = (NormalDist().inv_cdf((1 + level) / 2) / t_quantile((1 + level) / 2, len(numbers) - 1)) ** 2
    tries = area * (1 - area) / max(summed, least) * shrink / inflation
    low, high = wilson(area * tries, tries, level)
    return min(low, seen), max(high, seen)


@dataclass(frozen=True, slots=True)
class Separation:
    """In which part of all pairs the side with more of a figure has more of it, on average over figures; 0.5 at least.

    `low` and `high` are the ends of the 95% interval, None where all is of one cluster.
    """

    mean: float
    low: float | None
    high: float | None


def separation(
    columns: Sequence[Floats], truth: Bools, clusters: Sequence[Hashable], level: float = 0.95
) -> Separation | None:
    """Return how far two sides are apart over several figures of the same things; None where no figure has both sides.

    The mean is that of max(area, 1 - area) over the columns, in which NaN is a missing value. Its interval is Student's
    t over the sum of the influences that a cluster has on all areas. Sides that are alike come out somewhat above 0.5,
    the more so the fewer they are.

    Source: as for `auroc_interval`.
    """
    numbers: dict[Hashable, int] = {}
    groups = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)
    good, areas = np.asarray(truth, dtype=np.bool_), list[float]()
    moved = np.zeros(len(numbers))
    for column in columns:
        known = ~np.isnan(column)
        side, w = _sides(column[known], good[known], None)
        if not _both(side, w):
            continue
        area, influence = _influence(_Order.of(column[known]), side, w)
        areas.append(max(area, 1 - area))
        moved += (1 if area >= 0.5 else -1) * np.bincount(groups[known], weights=influence, minlength=len(numbers))
    if not areas:
        return None
    mean = float(np.mean(areas))
    if len(numbers) < 2:
        return Separation(mean, None, None)
    error = float(np.sqrt((moved**2).sum() * len(numbers) / (len(numbers) - 1))) / len(areas)
    half = error * t_quantile((1 + level) / 2, len(numbers) - 1)
    return Separation(mean, max(0.5, mean - half), min(1.0, mean + half))


def _sides(values: Numbers, truth: Bools, weights: Numbers | None) -> tuple[Floats, Floats]:
    """Return the truth as numbers, and the weight of each value."""
    _same_length(values, truth)
    good = np.asarray(truth, dtype=np.float64)
    return good, np.ones(len(good)) if weights is None else np.asarray(weights, dtype=np.float64)


def _both(good: Floats, w: Floats) -> bool:
    return bool((w * good).any() and (w * (1 - good)).any())


def _influence(order: _Order, good: Floats, w: Floats) -> tuple[float, Floats]:
    """Return the area, and how much each value moves it: by the part of the other side that it is right about."""
    hits, misses = (order.sum_weights((w * side)[np.newaxis])[0] for side in (good, 1 - good))
    below = (np.cumsum(misses) - misses / 2) / misses.sum()
    above = 1 - (np.cumsum(hits) - hits / 2) / hits.sum()
    right = above[order.group]
    right[good == 1] = below[order.group][good == 1]
    area = float((w * good * right).sum() / hits.sum())
    share = w / (good * hits.sum() + (1 - good) * misses.sum())
    return area, share * (right - area)


def ranks(values: Numbers) -> Floats:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    return _Order.of(values).ranks(np.ones((1, len(values))))[0]


@dataclass(frozen=True, slots=True)
class _Order:
    """Values in their order: the places of the sorted ones, where each group of equal ones starts, and whose it is."""

    places: NDArray[np.intp]
    starts: NDArray[np.intp]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, values: Numbers) -> _Order:
        array = np.asarray(values, dtype=np.float64)
        places = np.argsort(array, kind="stable")
        ordered = array[places]
        fresh = np.concatenate([np.ones(min(1, len(array)), dtype=np.bool_), ordered[1:] != ordered[:-1]])
        group = np.empty(len(array), dtype=np.intp)
        group[places] = np.cumsum(fresh) - 1
        return cls(places, np.flatnonzero(fresh), group)

    def sum_weights(self, weights: Weights) -> Floats:
        """Return the weight of each group of equal values, lowest first."""
        if not len(self.starts):
            return np.zeros((len(weights), 0))
        return np.add.reduceat(weights[:, self.places], self.starts, axis=1)

    def ranks(self, weights: Weights) -> Floats:
        """Return the mean rank of each value, where it stands as often as its weight says."""
        each = self.sum_weights(weights)
        return (np.cumsum(each, axis=1) - (each - 1) / 2)[:, self.group]


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)


def _single(results: Floats) -> float | None:
    return None if np.isnan(results[0]) else float(results[0])


def _same_length(
    first: Sequence[object] | Floats | NDArray[np.bool_], second: Sequence[object] | Floats | NDArray[np.bool_]
) -> None:
    if len(first) != len(second):
        raise ValueError(f"both lists need the same length, got {len(first)} and {len(second)}")
