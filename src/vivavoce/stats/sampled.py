"""Drawing some of many conversations with known probabilities, and means over the whole they stand for.

Simple, stratified and importance sampling are one case each of the same formulas: `vivavoce.stats.sampled` draws.

What is drawn depends on the seed alone: numpy keeps the numbers of its `RandomState` as they are forever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vivavoce.stats.intervals import effective_size, score_limits

MIN_PER_STRATUM = 2
"""Drawn from each stratum at least: one says nothing of how its values differ."""
SAME_FOR_ALL = 0.25
"""The part of the probability that is the same for all, so that no weight is above four times the mean."""


def allocation(sizes: Sequence[int], size: int) -> list[int]:
    """Return how many of `size` to draw from strata: in proportion to their sizes, and at least `MIN_PER_STRATUM` each.

    A stratum with fewer is drawn whole. There have to be as many in all as are to be drawn, and enough to draw for the
    least of each stratum.

    Raises:
        ValueError: there are fewer, or so few are to be drawn that a stratum would have too few.
    """
    fewest = MIN_PER_STRATUM if len(sizes) > 1 else 1
    least = [min(fewest, stratum_size) for stratum_size in sizes]
    whole = sum(sizes)
    if not sum(least) <= size <= whole:
        raise ValueError(f"between {sum(least)} and {whole} can be drawn, not {size}")
    shares = [size * stratum_size / whole for stratum_size in sizes]
    numbers = [
        min(stratum_size, max(few, int(share))) for stratum_size, few, share in zip(sizes, least, shares, strict=True)
    ]
    places = range(len(sizes))
    while (left := size - sum(numbers)) != 0:
        step = 1 if left > 0 else -1
        open_ = [at for at in places if (numbers[at] < sizes[at] if step > 0 else numbers[at] > least[at])]
        first = max(open_, key=lambda at: step * (shares[at] - numbers[at]))
        numbers[first] += step
    return numbers


def with_floor(values: ArrayLike) -> Floats:
    """Return how often each is drawn on average over all, by values of at least 0; those that are not known count 1.

    A quarter of the probability is the same for all, the rest is in proportion to the values.

    Source: T. Hesterberg, Weighted Average Importance Sampling and Defensive Mixture Distributions, Technometrics 37
    (1995).
    """
    weights = np.array(values, dtype=np.float64)
    known = ~np.isnan(weights)
    mean = float(weights[known].mean()) if known.any() else 0.0
    weights = weights / mean if mean > 0 else np.ones(len(weights))
    weights[~known] = 1.0
    return SAME_FOR_ALL + (1 - SAME_FOR_ALL) * weights


def inclusion(weights: ArrayLike, size: int) -> Floats:
    """Return how likely each is among `size`, in proportion to weights above 0 but never above 1.

    There have to be at least as many as are drawn.
    """
    shares = np.asarray(weights, dtype=np.float64)
    chances = size * shares / shares.sum()
    while (chances > 1).any():
        certain = chances >= 1
        rest = float(chances[~certain].sum())
        chances = np.where(certain, 1.0, chances * ((size - certain.sum()) / rest if rest else 1.0))
    return chances


def systematic(chances: Floats, random: np.random.RandomState) -> Places:
    """Return the places of those that are drawn, each as likely as it says; their number is the sum of the chances.

    The order is random, so that nearly every pair can be drawn together. Where all are as likely, the first of that
    order are drawn: then who draws more with the same numbers draws the same ones, and others.

    Source: W. G. Madow, On the Theory of Systematic Sampling, II, Annals of Mathematical Statistics 20 (1949).
    """
    order = random.permutation(len(chances))
    size, start = round(float(chances.sum())), float(random.random_sample())
    if (chances == chances[0]).all():
        return np.sort(order[:size])
    reached = np.cumsum(chances[order])
    reached[-1] = size
    ranks = np.searchsorted(reached, start + np.arange(size), side="right")
    return np.sort(order[ranks])


Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_ROUNDING = 1e-12
"""A variance below this is rounding, not spread."""


@dataclass(frozen=True, slots=True)
class Design:
    """How many there are in each stratum, and how many of them were drawn."""

    sizes: Sequence[int]
    sample_sizes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Units:
    """Some that were drawn: the stratum of each, from 0, and how likely it was to be drawn."""

    strata: Sequence[int] | Places
    chances: Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class PopulationMean:
    """A mean over a population, estimated from `n` values, with its interval.

    `effective` is how many values, drawn at random from a population without end, would tell as much; infinite where
    every value of the population is known.
    """

    mean: float
    low: float
    high: float
    n: int
    effective: float


def population_mean(
    values: ArrayLike,
    units: Units,
    design: Design,
    outside: Units | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> PopulationMean | None:
    """Return the mean of a population, None where no value is known.

    `units` says of each value how it was drawn, `outside` the same of what was drawn and looked at and has no value of
    this kind, such as a conversation that a metric does not apply to: the mean is over the part of the population that
    has one. What was drawn and is in neither is not known; the others of its stratum stand for it.

    The weight of a value is 1 / its probability, scaled so that the weights of a stratum add up to its size (Hájek).
    The variance is Deville's for fixed sizes with unequal probabilities, summed over strata, of residuals from the
    mean. With equal probabilities these are the stratified mean and its variance with finite population correction.
    Strata with fewer than two known values are taken together.

    The interval is that of every mean (see `score_limits`), for this variance and with Student's quantile, over the
    part of the population that was not drawn for certain.

    Source: J. Hájek, Comment on an Essay by D. Basu (1971); J.-C. Deville, Variance Estimation for Complex Statistics
    and Estimators: Linearization and Residual Techniques, Survey Methodology 25 (1999); for the interval see
    `effective_size`.
    """
    y = np.asarray(values, dtype=np.float64)
    if not len(y):
        return None
    low, high = bounds
    y = (y - low) / (high - low)
    known = _Known.of(units, outside or Units((), ()), design)
    weights, open_ = known.weights[: len(y)], known.unsure[: len(y)] > _ROUNDING
    total = float(weights.sum())
    mean = float((weights * y).sum()) / total
    residuals = np.zeros(len(known.weights))
    residuals[: len(y)] = y - mean
    variance = known.variance(residuals) / total**2
    part = float(weights[open_].sum()) / total
    if not part:
        exact = low + mean * (high - low)
        return PopulationMean(exact, exact, exact, len(y), math.inf)
    squares = float((weights**2 * known.unsure[: len(y)]).sum()) / total**2
    rest = min(1.0, max(0.0, float(np.average(y[open_], weights=weights[open_]))))
    # heavy weights are not larger clusters: the usual share, and not the largest, is that of unseen evidence
    ends = score_limits(rest, variance / part**2, squares / part**2, squares / part**2, level, known.freedom)
    below, above = (low + min(1.0, max(0.0, mean + part * (end - rest))) * (high - low) for end in ends)
    worth = effective_size(min(1.0, max(0.0, mean)), variance, squares, squares, NormalDist().inv_cdf((1 + level) / 2))
    return PopulationMean(low + mean * (high - low), below, above, len(y), worth)


def size_for_half_width(size: int, population: int, rate: float, level: float = 0.95) -> int:
    """Return how many of a population have to be drawn for an interval half as wide as that of `size` of them.

    It is the least number whose interval, at the same rate of passing and for draws at random, has half the width. Near
    50% that is about four times as many, near 0% and 100% about twice: there the width goes with 1 / size.
    """
    goal = _width(size, population, rate, level) / 2
    low, high = min(size, population), population
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _width(middle, population, rate, level) <= goal else (middle + 1, high)
    return low


def _width(size: int, population: int, rate: float, level: float) -> float:
    """Return the width of the interval of a rate, of this many draws at random from a population."""
    if size >= population:
        return 0.0
    freedom, open_part = max(1, size - 1), 1 - size / population
    share, variance = open_part / size, open_part * rate * (1 - rate) / freedom
    low, high = score_limits(rate, variance, share, share, level, freedom)
    return high - low


def population_weights(units: Units, design: Design, outside: Units | None = None) -> list[float]:
    """Return for how many of the population each value stands, with the arguments of `population_mean`."""
    return _Known.of(units, outside or Units((), ()), design).weights[: len(units.strata)].tolist()


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of those that were drawn: their strata, weights, and the part of each that is left to chance."""

    strata: Places
    weights: Floats
    unsure: Floats
    freedom: int

    @classmethod
    def of(cls, inside: Units, outside: Units, design: Design) -> _Known:
        """Return it, with small strata taken together."""
        strata = np.concatenate([np.asarray(group.strata, dtype=np.intp) for group in (inside, outside)])
        chances = np.concatenate([np.asarray(group.chances, dtype=np.float64) for group in (inside, outside)])
        sizes, sample_sizes = (
            np.asarray(design.sizes, dtype=np.float64),
            np.asarray(design.sample_sizes, dtype=np.float64),
        )
        groups = _together(np.bincount(strata, minlength=len(sizes)), sizes, sample_sizes)
        strata = groups[strata]
        counts = np.bincount(strata, minlength=len(sizes))
        sizes = np.bincount(groups, weights=sizes, minlength=len(sizes))
        sample_sizes = np.bincount(groups, weights=sample_sizes, minlength=len(sizes))
        raw = np.bincount(strata, weights=1 / chances, minlength=len(sizes))
        weights = (sizes[strata] / raw[strata]) / chances
        unsure = np.clip(1 - chances * (counts[strata] / sample_sizes[strata]), 0.0, 1.0)
        open_ = np.bincount(strata, weights=unsure > _ROUNDING, minlength=len(sizes))
        freedom = int(open_.sum()) - int((open_ > 0).sum())
        return cls(strata, weights, unsure, freedom)

    def variance(self, residuals: Floats) -> float:
        """Return the variance of the weighted sum of residuals."""
        count = int(self.strata.max()) + 1
        of_size = np.bincount(self.strata, weights=self.weights, minlength=count)
        sums = np.bincount(self.strata, weights=self.weights * residuals, minlength=count)
        means = np.divide(sums, of_size, out=np.zeros(count), where=of_size > 0)
        parts = self.weights * (residuals - means[self.strata])
        chance = np.bincount(self.strata, weights=self.unsure, minlength=count)
        middle = np.bincount(self.strata, weights=self.unsure * parts, minlength=count)
        middle = np.divide(middle, chance, out=np.zeros(count), where=chance > 0)
        squares = np.bincount(self.strata, weights=self.unsure * (parts - middle[self.strata]) ** 2, minlength=count)
        shares = np.divide(self.unsure, chance[self.strata], out=np.zeros(len(parts)), where=chance[self.strata] > 0)
        lost = 1 - np.bincount(self.strata, weights=shares**2, minlength=count)
        return float(np.divide(squares, lost, out=np.zeros(count), where=lost > _ROUNDING).sum())


def _together(counts: NDArray[np.intp], sizes: Floats, sample_sizes: Floats) -> Places:
    """Return for each stratum the one that it is counted with, so that at least two are known of each or all are."""
    groups = np.arange(len(sizes))
    alone = (counts < 2) & (counts < sizes) & (sample_sizes > 0)
    if not alone.any() or len(sizes) < 2:
        return groups
    others = np.flatnonzero(~alone & (counts > 0))
    joined = np.flatnonzero(alone)
    if counts[joined].sum() < 2 and len(others):
        joined = np.append(joined, others[np.argmin(sizes[others])])
    groups[joined] = joined[-1]
    return groups
