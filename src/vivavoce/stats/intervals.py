"""Means with their intervals: every mean has its n, and its interval knows which values belong together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import mul
from statistics import NormalDist

from vivavoce.stats.student import t_quantile

_ROUNDING = 1e-12
"""A standard error below this part of the mean's size is rounding, not spread."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of `n` values from `clusters` independent sources; `low` and `high` are None where nothing can be said."""

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    weights: Sequence[float] | None = None,
) -> Estimate | None:
    """Return the mean of the values and its two-sided interval, None where there is no value.

    `clusters` names for each value the conversation or sample it came from; values of one cluster are not independent.
    Without it every value is its own cluster. `bounds` is the range that the values can take, infinite where there is
    none. Fewer than two clusters give no interval. `weights` says how much each value counts, equally unless given.

    The interval is Student's t with G - 1 degrees of freedom over the cluster-robust standard error
    sqrt(G / (G - 1) * sum over clusters of (sum of residuals)^2) / n, cut to the bounds. Single values that all lie on
    a bound, such as passes and failures, get Wilson's interval. Clusters that all agree would give a width of zero;
    see `_unanimous`.

    Source: A. C. Cameron and D. L. Miller, A Practitioner's Guide to Cluster-Robust Inference (2015); for evaluations
    E. Miller, Adding Error Bars to Evals, arXiv:2411.00640 (2024).

    Raises:
        ValueError: a value lies outside the bounds, or `clusters` has another length.
    """
    if not values:
        return None
    _check_bounds(values, bounds)
    n, w = len(values), _scaled(weights, len(values))
    mean = math.fsum(values if w is None else map(mul, w, values)) / n
    residuals = [value - mean for value in values]
    if w is not None:
        residuals = list(map(mul, w, residuals))
    if clusters is not None:
        residuals = _summed(residuals, clusters)
    low, high = _limits(values, mean, residuals, level, bounds, weighted=w is not None)
    return Estimate(mean, low, high, n, len(residuals))


@dataclass(frozen=True, slots=True)
class ShareSums:
    """What the interval of a share needs of the samples that it is over, n tries each, of which p passed.

    `samples` counts those with a try; the others are sums over them of p, n, p p, p n and n n.
    """

    samples: int
    passed: int
    tries: int
    passed_squared: int
    passed_by_tries: int
    tries_squared: int

    def __add__(self, other: ShareSums) -> ShareSums:
        """Add the sums of other samples."""
        return ShareSums(
            self.samples + other.samples,
            self.passed + other.passed,
            self.tries + other.tries,
            self.passed_squared + other.passed_squared,
            self.passed_by_tries + other.passed_by_tries,
            self.tries_squared + other.tries_squared,
        )


def share_interval(sums: ShareSums, level: float = 0.95) -> Estimate | None:
    """Return what `mean_interval` does for passes and failures, from sums that a database can count."""
    if not sums.tries:
        return None
    mean = sums.passed / sums.tries
    if sums.samples == sums.tries > 1:
        return Estimate(mean, *wilson(sums.passed, sums.tries, level), sums.tries, sums.samples)
    squares = sums.passed_squared - 2 * mean * sums.passed_by_tries + mean**2 * sums.tries_squared
    limits = _robust(mean, sums.tries, sums.samples, max(0.0, squares), level, (0.0, 1.0))
    return Estimate(mean, *limits, sums.tries, sums.samples)


def wilson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a proportion after `successes` of `n` independent tries.

    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 22 (1927).
    """
    if not (n > 0 and 0 <= successes <= n):
        raise ValueError(f"successes must be between 0 and n, and n above 0; got {successes} of {n}")
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    centre = (successes + z2 / 2) / (n + z2)
    half = math.sqrt(z2 * (successes * (n - successes) / n + z2 / 4)) / (n + z2)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return low, high


def percentile(values: Sequence[float], q: float) -> float | None:
    """Return the value below which `q` percent of the values lie, None where there is no value.

    Between two values it interpolates linearly, as numpy does by default.

    Source: R. J. Hyndman and Y. Fan, Sample Quantiles in Statistical Packages (1996), definition 7.
    """
    if not 0 <= q <= 100:
        raise ValueError(f"a percentile is between 0 and 100, got {q}")
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * q / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _check_bounds(values: Sequence[float], bounds: tuple[float, float]) -> None:
    low, high = bounds
    if low <= min(values) and max(values) <= high and all(map(math.isfinite, values)):
        return
    for place, value in enumerate(values):
        if not (low <= value <= high and math.isfinite(value)):
            raise ValueError(f"value {place} must be a number between {low} and {high}, got {value}")


def _scaled(weights: Sequence[float] | None, n: int) -> list[float] | None:
    """Return weights with the mean 1, None where all are equal."""
    if weights is None or len(set(weights)) == 1:
        return None
    whole = math.fsum(weights)
    return [n * weight / whole for weight in weights]


def _summed(residuals: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """Return the sum of residuals of each cluster."""
    sums: defaultdict[Hashable, float] = defaultdict(float)
    for residual, cluster in zip(residuals, clusters, strict=True):
        sums[cluster] += residual
    return list(sums.values())


def _limits(
    values: Sequence[float],
    mean: float,
    residuals: list[float],
    level: float,
    bounds: tuple[float, float],
    *,
    weighted: bool,
) -> tuple[float, float] | tuple[None, None]:
    low, high = bounds
    n = len(values)
    if not weighted and len(residuals) == n > 1 and all(value in bounds for value in values):
        below, above = wilson(sum(value == high for value in values), n, level)
        return low + below * (high - low), low + above * (high - low)
    return _robust(mean, n, len(residuals), math.fsum(map(mul, residuals, residuals)), level, bounds)


def _robust(
    mean: float, n: int, groups: int, squares: float, level: float, bounds: tuple[float, float]
) -> tuple[float, float] | tuple[None, None]:
    """Return the cluster-robust interval; `squares` are those of the sums of residuals of each cluster."""
    if groups < 2:
        return None, None
    error = math.sqrt(groups / (groups - 1) * squares) / n
    if error <= _ROUNDING * max(1.0, abs(mean)):
        return _unanimous(mean, groups, level, bounds)
    half = error * t_quantile((1 + level) / 2, groups - 1)
    return max(bounds[0], mean - half), min(bounds[1], mean + half)


def _unanimous(
    mean: float, groups: int, level: float, bounds: tuple[float, float]
) -> tuple[float, float] | tuple[None, None]:
    """Return the interval of a mean on which every cluster agrees.

    None of `groups` clusters differed, so by Wilson's interval up to a part `rare` of all clusters may; those could lie
    as far away as the bounds. For values of 0 or 1 this is Wilson's interval itself: 5 of 5 passes are not certainty.
    """
    low, high = bounds
    if math.isinf(low) or math.isinf(high):
        return None, None
    _, rare = wilson(0, groups, level)
    return mean - rare * (mean - low), mean + rare * (high - mean)


def spoiled_bounds(passed: int, scored: int, spoiled: int) -> dict[str, float]:
    """Return the rates of passing if all trials that the tester spoiled had failed, and if all had passed.

    They are empty where it spoiled none.
    """
    if not spoiled:
        return {}
    whole = scored + spoiled
    return {"raw_pass_rate": passed / whole, "highest_pass_rate": (passed + spoiled) / whole}
