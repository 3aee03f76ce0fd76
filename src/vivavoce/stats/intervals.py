"""Means with their intervals, and pass@k and pass^k; an interval knows which values belong together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from operator import mul
from statistics import NormalDist
from typing import TypeAlias

from vivavoce.comparing.thresholds import mean

LEVEL = 0.95
"""The level of the intervals of a summary, and of those that a plan is made for."""

_MANY = 1_000
"""From this many degrees of freedom on, the expansion around the normal quantile is exact to the last digits."""


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with `freedom` degrees of freedom.

    `probability` is at least 0.5 and below 1.

    Source: M. Abramowitz and I. A. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 to 26.7.5.

    Raises:
        ValueError: `probability` or `freedom` is out of range.
    """
    if not 0.5 <= probability < 1 or freedom < 1:
        raise ValueError(f"Student's t needs 0.5 <= probability < 1 and freedom >= 1; got {probability} and {freedom}")
    normal = NormalDist().inv_cdf(probability)
    if freedom >= _MANY:
        return _expand_quantile(normal, freedom)
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    if freedom == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    return _solve_quantile(2 * probability - 1, freedom, normal)


def _solve_quantile(within: float, freedom: int, value: float) -> float:
    """Return the t with the probability `within` between -t and t, by Newton's method from a value below it.

    The probability is a concave function of t, so that no step goes too far.
    """
    while True:
        step = (within - _within(value, freedom)) / (2 * _density(value, freedom))
        if step <= 1e-15 * value:
            return value
        value += step


def _within(value: float, freedom: int) -> float:
    """Return the probability between -value and value, which is a finite sum."""
    angle = math.atan(value / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    terms = [term]
    for power in range(2 + odd, freedom - 1, 2):
        term *= square * (power - 1) / power
        terms.append(term)
    sines = math.sin(angle) * math.fsum(terms)
    return 2 / math.pi * (angle + sines) if odd else sines


def _density(value: float, freedom: int) -> float:
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(scale - (freedom + 1) / 2 * math.log1p(value * value / freedom))


def _expand_quantile(x: float, freedom: int) -> float:
    square = x * x
    terms = (
        x,
        x * (square + 1) / 4,
        x * ((5 * square + 16) * square + 3) / 96,
        x * (((3 * square + 19) * square + 17) * square - 15) / 384,
        x * ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


_ROUNDING = 1e-12
"""A standard error below this part of the mean's size is rounding, not spread."""

TrialCounts: TypeAlias = Mapping[tuple[int, int], int]
"""How many samples passed p of n trials, by (p, n)."""


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
    level: float = LEVEL,
    bounds: tuple[float, float] = (0.0, 1.0),
    weights: Sequence[float] | None = None,
) -> Estimate | None:
    """Return the mean of the values and its two-sided interval, None where there is no value.

    `clusters` names for each value the conversation or sample it came from; values of one cluster are not independent.
    Without it every value is its own cluster. `bounds` is the range that the values can take, infinite where there is
    none. `weights` says how much each value counts, equally unless given.

    Within bounds this is the score interval of E. B. Wilson for `effective_size` independent values. For single passes
    and failures that is Wilson's interval itself. It is defined for one cluster, and for values that are all equal. A
    higher value in place of another never lowers an end. A further value of a cluster can, since it makes the clusters
    less equal: the mean weighs values, so a cluster weighs as many as it has.

    Without bounds it is Student's t with G - 1 degrees of freedom over the cluster-robust standard error
    sqrt(G / (G - 1) * sum over clusters of (sum of residuals)^2) / n. One cluster, or equal values, give no interval.

    Source: for clusters A. C. Cameron and D. L. Miller, A Practitioner's Guide to Cluster-Robust Inference (2015); for
    the score interval see `wilson` and `effective_size`.

    Raises:
        ValueError: a value lies outside the bounds, a weight is not a finite number of at least 0, or `clusters` or
            `weights` has another length than the values.
    """
    if not values:
        return None
    _check_bounds(values, bounds)
    statistics = _Clusters(Counter(_sum_clusters(values, clusters, weights)))
    low, high = bounds
    if math.isinf(low) or math.isinf(high):
        return Estimate(statistics.mean, *statistics.student(level), len(values), statistics.number)
    below, above = statistics.score_limits(level, bounds)
    return Estimate(statistics.mean, below, above, len(values), statistics.number)


def share_interval(counts: TrialCounts, level: float = LEVEL) -> Estimate | None:
    """Return the interval that `mean_interval` gives for passes and failures, from counts of samples."""
    statistics = _Clusters({tries: number for tries, number in counts.items() if tries[1] and number})
    if not statistics.counts:
        return None
    return Estimate(statistics.mean, *statistics.score_limits(level), round(statistics.weight), statistics.number)


@dataclass(frozen=True, slots=True)
class _Clusters:
    """How many clusters have a sum of values and a weight, by (sum, weight)."""

    counts: Mapping[tuple[float, float], int]

    @property
    def number(self) -> int:
        return sum(self.counts.values())

    @property
    def weight(self) -> float:
        return math.fsum(number * weight for (_, weight), number in self.counts.items())

    @property
    def mean(self) -> float:
        return math.fsum(number * total for (total, _), number in self.counts.items()) / self.weight

    def variance(self) -> float:
        """Return the variance of the mean, without a correction for few clusters."""
        mean = self.mean
        squares = (number * (total - mean * weight) ** 2 for (total, weight), number in self.counts.items())
        return math.fsum(squares) / self.weight**2

    def score_limits(self, level: float, bounds: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
        low, width = bounds[0], bounds[1] - bounds[0]
        mean = min(1.0, max(0.0, (self.mean - low) / width))
        squares = math.fsum(number * weight**2 for (_, weight), number in self.counts.items()) / self.weight**2
        heaviest = max(weight for _, weight in self.counts) / self.weight
        below, above = score_limits(mean, self.variance() / width**2, squares, heaviest, level)
        return low + below * width, low + above * width

    def student(self, level: float) -> tuple[float, float] | tuple[None, None]:
        mean, clusters = self.mean, self.number
        if clusters < 2:
            return None, None
        error = math.sqrt(self.variance() * clusters / (clusters - 1))
        if error <= _ROUNDING * max(1.0, abs(mean)):
            return None, None
        half = error * t_quantile((1 + level) / 2, clusters - 1)
        return mean - half, mean + half


def score_limits(
    mean: float, variance: float, squares: float, heaviest: float, level: float, freedom: int | None = None
) -> tuple[float, float]:
    """Return the ends of the score interval of a mean from 0 to 1, for the `effective_size` of its clusters.

    With `freedom` the quantile is that of Student's t with this many degrees of freedom, instead of the normal one: for
    a variance that comes from few clusters of each stratum.
    """
    normal = NormalDist().inv_cdf((1 + level) / 2)
    quantile = normal if freedom is None else t_quantile((1 + level) / 2, max(1, freedom))
    size = effective_size(mean, variance, squares, heaviest, quantile) * (normal / quantile) ** 2
    return wilson(mean * size, size, level)


def effective_size(mean: float, variance: float, squares: float, heaviest: float, quantile: float) -> float:
    """Return how many independent passes and failures tell as much about a mean from 0 to 1 as its clusters do.

    `variance` is that of the mean: the sum over clusters of (share * (mean of the cluster - mean))^2, where the shares
    say what each cluster contributes to the mean and add up to 1. `squares` is the sum of their squares, `heaviest` the
    largest share.

    The size is mean (1 - mean) / variance, where both get evidence that nobody saw: quantile^2 / 2 clusters, as heavy
    as the heaviest, that differ as much as clusters can. So values that are all equal count once for each cluster, and
    the size never grows faster than the mean falls. Without the added evidence the interval would not be monotone: a
    bot that fails once more could get a higher lower end.

    Source: E. L. Korn and B. I. Graubard, Confidence Intervals for Proportions with Small Expected Number of Positive
    Counts Estimated from Survey Data, Survey Methodology 24 (1998), for the interval of Clopper and Pearson; for that
    of Wilson N. Dean and M. Pagano, Evaluating Confidence Interval Methods for Binomial Proportions in Clustered
    Surveys, Journal of Survey Statistics and Methodology 3 (2015), and C. Franco and others, Comparative Study of
    Confidence Intervals for Proportions in Complex Sample Surveys, same journal 7 (2019); for shares that differ
    L. Kish, Survey Sampling (1965), section 11.7. The added evidence is that of Wilson's interval, z^2 / 2 on either
    side.
    """
    added = quantile**2 / 2 * heaviest**2
    return (mean * (1 - mean) + added / squares) / (variance + added)


def wilson(successes: float, n: float, level: float = LEVEL) -> tuple[float, float]:
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


def _sum_clusters(
    values: Sequence[float], clusters: Sequence[Hashable] | None, weights: Sequence[float] | None
) -> Iterable[tuple[float, float]]:
    """Return for each cluster the weighted sum of its values, and the sum of their weights."""
    sizes = [1.0] * len(values) if weights is None else _checked_weights(weights)
    if len(sizes) != len(values):
        raise ValueError(f"each value needs a weight: {len(values)} values, {len(sizes)} weights")
    totals = list(map(mul, sizes, values)) if weights is not None else values
    if clusters is None:
        return zip(totals, sizes, strict=True)
    sums: defaultdict[Hashable, float] = defaultdict(float)
    heaviness: defaultdict[Hashable, float] = defaultdict(float)
    for total, size, cluster in zip(totals, sizes, clusters, strict=True):
        sums[cluster] += total
        heaviness[cluster] += size
    return zip(sums.values(), heaviness.values(), strict=True)


def _checked_weights(weights: Sequence[float]) -> list[float]:
    for place, weight in enumerate(weights):
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"weight {place} must be a finite number of at least 0, got {weight}")
    if not any(weights):
        raise ValueError("at least one weight must be above 0")
    return list(weights)


def spoiled_bounds(passed: int, scored: int, spoiled: int) -> dict[str, float]:
    """Return the rates of passing if all trials that the tester spoiled had failed, and if all had passed.

    They are empty where it spoiled none.
    """
    if not spoiled:
        return {}
    whole = scored + spoiled
    return {"raw_pass_rate": passed / whole, "highest_pass_rate": (passed + spoiled) / whole}


@dataclass(frozen=True, slots=True)
class Passes:
    """Means over the `samples` that have at least `k` trials; `left_out` samples have fewer.

    `hat_low` and `hat_high` are the 95% interval of `hat_k`, by `mean_interval` over the samples.
    """

    k: int
    at_k: float
    hat_k: float
    hat_low: float | None
    hat_high: float | None
    samples: int
    left_out: int


def pass_at_k(successes: int, trials: int, k: int) -> Fraction:
    """Return the exact chance that at least one of `k` trials, drawn from those seen, succeeded.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code, arXiv:2107.03374 (2021), equation 1.
    """
    _check(successes, trials, k)
    return 1 - Fraction(math.comb(trials - successes, k), math.comb(trials, k))


def pass_hat_k(successes: int, trials: int, k: int) -> Fraction:
    """Return the exact chance that all of `k` trials, drawn from those seen, succeeded.

    Source: S. Yao et al., tau-bench, arXiv:2406.12045 (2024).
    """
    _check(successes, trials, k)
    return Fraction(math.comb(successes, k), math.comb(trials, k))


def passes(counts: Sequence[tuple[int, int]], k: int) -> Passes | None:
    """Return the means of pass@k and pass^k over samples, None where no sample has `k` trials.

    `counts` holds for each sample how many of its trials succeeded, and how many it has.
    """
    enough = [(successes, trials) for successes, trials in counts if trials >= k]
    if not enough:
        return None
    hats = [pass_hat_k(c, n, k) for c, n in enough]
    interval = mean_interval([float(each) for each in hats])
    return Passes(
        k=k,
        at_k=float(mean([pass_at_k(c, n, k) for c, n in enough])),
        hat_k=float(mean(hats)),
        hat_low=interval and interval.low,
        hat_high=interval and interval.high,
        samples=len(enough),
        left_out=len(counts) - len(enough),
    )


def passes_by_k(counts: Sequence[tuple[int, int]]) -> dict[int, Passes]:
    """Return pass@k and pass^k over the same samples for every k; empty where trials do not repeat.

    They are the samples with at least as many trials as more than half of all samples have, which is also the largest
    k. Over other samples for each k, pass^k could rise with k, only because hard samples have fewer trials.
    """
    ordered = sorted(trials for _, trials in counts)
    most = ordered[(len(ordered) - 1) // 2] if ordered else 0
    enough = [(successes, trials) for successes, trials in counts if trials >= most]
    results = {k: passes(enough, k) for k in range(1, most + 1)} if most > 1 else {}
    left_out = len(counts) - len(enough)
    return {k: replace(result, left_out=left_out) for k, result in results.items() if result is not None}


def _check(successes: int, trials: int, k: int) -> None:
    if not (0 <= successes <= trials and 1 <= k <= trials):
        raise ValueError(
            f"successes must be between 0 and trials, and k between 1 and trials; "
            f"got {successes} of {trials} trials with k = {k}"
        )
