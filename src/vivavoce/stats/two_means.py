"""Means of two independent groups: how far apart they are, and whether chance explains it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from vivavoce.stats.bootstrap import Floats
from vivavoce.stats.groups import GroupSums, group_differences
from vivavoce.stats.intervals import ShareSums
from vivavoce.stats.student import t_quantile

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """The mean of one group less that of another; `low` and `high` are None where nothing can be said."""

    difference: float
    low: float | None
    high: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """Values of one group, and for each the sample that it came from; those of one sample are not independent."""

    values: Sequence[float]
    clusters: Sequence[Hashable]


def mean_difference(one: Group, other: Group, level: float = 0.95) -> MeanDifference | None:
    """Return how much higher the mean of `one` is than that of `other`, None where a group is empty.

    Values that are all 0 or 1 are shares, and are compared as `group_differences` does. For others the interval is
    Student's t over the root of the sum of both cluster-robust variances, with Welch's degrees of freedom. Where no
    group varies at all, the p value is that of an exact permutation test of groups without overlap, and there is no
    interval.

    Source: B. L. Welch, The Generalization of Student's Problem when Several Different Population Variances are
    Involved, Biometrika 34 (1947), with the variances of A. C. Cameron and D. L. Miller, A Practitioner's Guide to
    Cluster-Robust Inference (2015).
    """
    if not one.values or not other.values:
        return None
    if set(one.values) | set(other.values) <= {0.0, 1.0}:
        return _of_shares(one, other, level)
    (mean_a, var_a, groups_a), (mean_b, var_b, groups_b) = _moments(one), _moments(other)
    difference = mean_a - mean_b
    if min(groups_a, groups_b) < 2:
        return MeanDifference(difference, None, None, None)
    error = math.sqrt(var_a + var_b)
    if error <= _ROUNDING * max(1.0, abs(mean_a), abs(mean_b)):
        apart = abs(difference) > _ROUNDING
        return MeanDifference(difference, None, None, 2 / math.comb(groups_a + groups_b, groups_a) if apart else 1.0)
    freedom = (var_a + var_b) ** 2 / (var_a**2 / (groups_a - 1) + var_b**2 / (groups_b - 1))
    half = error * t_quantile((1 + level) / 2, max(1, math.floor(freedom)))
    return MeanDifference(difference, difference - half, difference + half, _two_sided(difference / error, freedom))


def _two_sided(t: float, freedom: float) -> float:
    from scipy.special import stdtr

    return min(1.0, 2 * float(stdtr(freedom, -abs(t))))


def _moments(group: Group) -> tuple[float, float, int]:
    """Return the mean, its cluster-robust variance, and the number of clusters."""
    values: Floats = np.asarray(group.values, dtype=np.float64)
    _, of = np.unique(_numbered(group.clusters), return_inverse=True)
    mean = float(values.mean())
    sums = np.bincount(of, weights=values - mean)
    groups = len(sums)
    spread = float((sums**2).sum()) * groups / (groups - 1) if groups > 1 else 0.0
    return mean, spread / len(values) ** 2, groups


def _numbered(clusters: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(one, len(numbers)) for one in clusters]


def _of_shares(one: Group, other: Group, level: float) -> MeanDifference:
    (found,) = group_differences([GroupSums(_share(one), _share(other))], level)
    plain = float(np.mean(one.values)) - float(np.mean(other.values))
    if found is None:
        return MeanDifference(plain, None, None, None)
    return MeanDifference(found.difference, found.low, found.high, found.p_value)


def _share(group: Group) -> ShareSums:
    of = np.array(_numbered(group.clusters), dtype=np.intp)
    passed = np.bincount(of, weights=np.asarray(group.values, dtype=np.float64)).round().astype(int)
    tries = np.bincount(of)
    return ShareSums(
        len(tries),
        int(passed.sum()),
        int(tries.sum()),
        int((passed**2).sum()),
        int((passed * tries).sum()),
        int((tries**2).sum()),
    )
