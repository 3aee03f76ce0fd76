"""The mean of a few independent values within bounds: an interval and p values for any distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_DISTINCT = 5_000
"""Distinct values above which neighbors are averaged."""

_ROUNDING = 1e-9
"""The part of the scale by which a value may be outside of the bounds, from rounding."""
_STEP = 0.2
"""The distance of the nodes of an integral, after its substitution by a hyperbolic sine."""
_CUT = 40.0
"""An integrand below e^-40 of its peak is 0."""
_MIN_PROBABILITY = 1e-300
"""The least chance that has a normal score."""
_CLOSE = 1e-10
"""A place on the scale from 0 to 1, and a normal score, are exact enough within this."""
_STEPS = 60
"""Steps of a search at most."""


@dataclass(frozen=True, slots=True)
class BoundedMean:
    """The limits of a mean, and the p values of a hypothetical mean: see `bounded_mean`.

    `low`, `high`, and `p_value` are two-sided. `upper_bound` and `below_p_value` are one-sided: they ask whether the
    mean is lower.
    """

    low: float
    high: float
    p_value: float
    upper_bound: float
    below_p_value: float


def bounded_mean(
    values: Sequence[float], bounds: tuple[float, float], level: float = 0.95, null: float = 0.0
) -> BoundedMean:
    """Return the interval of the mean of independent values within bounds, and the p values of `null`.

    The values are independent draws from one distribution, all of it within the bounds; its shape does not matter.

    To n values belongs one more that nobody saw. For the upper end it is the upper bound, for the lower end the lower
    one. The n + 1 values get random weights that add up to 1, all of them equally likely (a flat Dirichlet
    distribution). The upper end is the (1 + level) / 2 quantile of their weighted mean, the lower end the
    (1 - level) / 2 quantile. The p value is twice the smaller of the chances that the weighted mean lies on the far
    side of `null`, so it is at most 1 - level exactly where the interval excludes `null`. The one-sided upper bound is
    the `level` quantile; it is below `null` exactly where its p value, the chance of at least `null`, is at most
    1 - level.

    No end falls when a value rises. For values at the two bounds the interval is that of Clopper and Pearson. For
    differences of passes and failures, which are -1, 0, or 1, the p value of 0 is that of McNemar's exact test.

    Above `MAX_DISTINCT` distinct values, those that agree to about four digits are averaged.

    Source: N. Gaffke, Three Test Statistics for a Nonparametric One-Sided Hypothesis on the Mean of a Nonnegative
    Variable, Mathematical Methods of Statistics 14 (2005); E. Learned-Miller and P. S. Thomas, A New Confidence
    Interval for the Mean of a Bounded Random Variable, arXiv:1905.06208 (2019). It is proven to hold in special cases;
    for all others the authors conjecture it, and no counterexample is known.

    Raises:
        ValueError: there is no value, a value lies outside the bounds, or a bound is infinite.
    """
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"bounds must be finite and in order, got {low} and {high}")
    scaled = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    if not len(scaled) or not (scaled.min() >= -_ROUNDING and scaled.max() <= 1 + _ROUNDING):  # NaN fails both
        raise ValueError(f"at least one value is needed, and each between {low} and {high}")
    scaled, counts = _distinct(np.clip(scaled, 0.0, 1.0))
    place = (null - low) / (high - low)
    with_one, with_zero = _Weighted.of(scaled, counts, 1.0), _Weighted.of(1 - scaled, counts, 1.0)
    tail = (1 - level) / 2
    above, below = with_one.quantile(tail), 1 - with_zero.quantile(tail)
    bound = with_one.quantile(1 - level)
    is_low, is_high = with_one.above(place), with_zero.above(1 - place)
    p_value = min(1.0, 2 * min(is_low, is_high))
    # the root of a quantile is not exact; the p value decides on which side of it `null` lies
    above = min(above, math.nextafter(place, -1.0)) if 2 * is_low <= 1 - level else max(above, place)
    below = max(below, math.nextafter(place, 2.0)) if 2 * is_high <= 1 - level else min(below, place)
    bound = min(bound, math.nextafter(place, -1.0)) if is_low <= 1 - level else max(bound, place)
    lower, upper, one_sided = (low + end * (high - low) for end in (below, above, bound))
    return BoundedMean(lower, upper, p_value, one_sided, is_low)


def _distinct(values: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values and how often each occurs; of very many, averages of neighbors."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= MAX_DISTINCT:
        return distinct, counts.astype(np.float64)
    bins = np.minimum((values * MAX_DISTINCT).astype(np.intp), MAX_DISTINCT - 1)
    numbers = np.bincount(bins, minlength=MAX_DISTINCT).astype(np.float64)
    sums = np.bincount(bins, weights=values, minlength=MAX_DISTINCT)
    return sums[numbers > 0] / numbers[numbers > 0], numbers[numbers > 0]


@dataclass(frozen=True, slots=True)
class _Weighted:
    """The mean of distinct values, each with its count, under random weights with a flat Dirichlet distribution."""

    values: Floats
    counts: Floats

    @classmethod
    def of(cls, values: Floats, counts: Floats, unseen: float) -> _Weighted:
        """Return that of some values and one more."""
        return cls(np.append(values, unseen), np.append(counts, 1.0))

    def above(self, place: float) -> float:
        """Return the chance that the mean is at least `place`.

        The weights are exponential variables over their sum, so it is the chance that the sum of (value - place) times
        an exponential variable is at least 0.
        """
        return _chance(self.values - place, self.counts)

    def quantile(self, tail: float) -> float:
        """Return the place that the mean exceeds with the chance `tail`, which is below one half.

        Normal scores of the chances are nearly a line in the place. Secants find the place, bisection where they leave
        the bracket.
        """
        low, high = float(self.values.min()), float(self.values.max())
        if low == high:
            return high
        goal, size = _score(tail), float(self.counts.sum())
        mean = float(self.counts @ self.values) / size
        spread = math.sqrt(float(self.counts @ (self.values - mean) ** 2) / size / (size + 1))
        slope, place = 1 / spread, mean + goal * spread
        before: tuple[float, float] | None = None
        for _ in range(_STEPS):
            if not low < place < high:
                place = (low + high) / 2
            excess = _score(self.above(place)) - goal
            low, high = (place, high) if excess < 0 else (low, place)
            if abs(excess) < _CLOSE or high - low < _CLOSE:
                break
            if before is not None and place != before[0]:
                slope = (excess - before[1]) / (place - before[0])
            before = place, excess
            place = place - excess / slope if slope > 0 else high
        return min(high, max(low, place))


def _score(chance: float) -> float:
    """Return the normal score of an upper tail."""
    return -NormalDist().inv_cdf(min(1 - 1e-16, max(_MIN_PROBABILITY, chance)))


def _chance(factors: Floats, counts: Floats) -> float:
    """Return the chance that a sum of exponential variables, times their factors, is at least 0."""
    if factors.max() <= 0:
        return 0.0
    if factors.min() >= 0:
        return 1.0
    is_nonzero = factors != 0
    factors, counts = factors[is_nonzero], counts[is_nonzero]
    if counts @ factors > 0:
        return 1 - _tail(-factors, counts)
    return _tail(factors, counts)


def _tail(factors: Floats, counts: Floats) -> float:
    """Return the chance that a sum is above 0, for factors whose counted sum is not above 0.

    It is the integral of the moment generating function over z, along a line through the saddle point of both. There
    the integrand hardly oscillates, so that a small chance is as exact as a large one.

    Source: R. Lugannani and S. Rice, Saddle Point Approximation for the Distribution of the Sum of Independent Random
    Variables, Advances in Applied Probability 12 (1980), whose integral is computed here and not approximated.
    """
    factors = factors / factors.max()
    point = _saddle(factors, counts)
    slopes = factors / (1 - factors * point)
    width = 1 / math.sqrt(float(counts @ slopes**2) + 1 / point**2)
    slopes = np.append(slopes, -1 / point) * width  # 1 / z as one more factor
    numbers = np.append(counts, 1.0)

    def decay(v: float) -> float:
        return 0.5 * float(numbers @ np.log1p((slopes * math.sinh(v)) ** 2)) - v

    end = 1.0
    while decay(end) < _CUT:
        end += 1.0
    nodes = np.arange(0.0, end + _STEP, _STEP)
    steps = slopes[:, None] * np.sinh(nodes)[None, :]
    size = -0.5 * (numbers @ np.log1p(steps**2))
    angle = numbers @ np.arctan(steps)
    heights = np.exp(size) * np.cos(angle) * np.cosh(nodes)
    integral = _STEP * (float(heights.sum()) - float(heights[0]) / 2) * width
    peak = -float(counts @ np.log1p(-factors * point)) - math.log(point)
    return min(1.0, max(0.0, math.exp(peak) * integral / math.pi))


def _saddle(factors: Floats, counts: Floats) -> float:
    """Return about where, between 0 and 1, the integrand of `_tail` is least on the real line."""
    low, high = 0.0, 1.0
    mean, square = float(counts @ factors), float(counts @ factors**2)
    point = min(0.9, (-mean + math.sqrt(mean**2 + 4 * square)) / (2 * square))
    for _ in range(_STEPS):
        slopes = factors / (1 - factors * point)
        slope, curve = float(counts @ slopes) - 1 / point, float(counts @ slopes**2) + 1 / point**2
        low, high = (point, high) if slope < 0 else (low, point)
        if slope * slope <= 1e-4 * curve:
            return point
        step = point - slope / curve
        point = step if low < step < high else (low + high) / 2
    return point
