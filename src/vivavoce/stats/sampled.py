"""Means over a whole population of which only some were drawn, with known probabilities, by strata or not.

Simple, stratified and importance sampling are one case each of the same formulas: `vivavoce.stats.drawing` draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vivavoce.stats.intervals import effective_size, score_limits

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_ROUNDING = 1e-12
"""A variance below this is rounding, not spread."""


@dataclass(frozen=True, slots=True)
class Design:
    """How many there are in each stratum, and how many of them were drawn."""

    sizes: Sequence[int]
    drawn: Sequence[int]


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
    Strata of which fewer than two are known are taken together.

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
    # heavy weights are no larger clusters: the usual share, and not the largest, is that of unseen evidence
    ends = score_limits(rest, variance / part**2, squares / part**2, squares / part**2, level, known.freedom)
    below, above = (low + min(1.0, max(0.0, mean + part * (end - rest))) * (high - low) for end in ends)
    worth = effective_size(min(1.0, max(0.0, mean)), variance, squares, squares, NormalDist().inv_cdf((1 + level) / 2))
    return PopulationMean(low + mean * (high - low), below, above, len(y), worth)


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
        strata = np.concatenate([np.asarray(one.strata, dtype=np.intp) for one in (inside, outside)])
        chances = np.concatenate([np.asarray(one.chances, dtype=np.float64) for one in (inside, outside)])
        sizes, drawn = np.asarray(design.sizes, dtype=np.float64), np.asarray(design.drawn, dtype=np.float64)
        groups = _together(np.bincount(strata, minlength=len(sizes)), sizes, drawn)
        strata = groups[strata]
        counts = np.bincount(strata, minlength=len(sizes))
        sizes = np.bincount(groups, weights=sizes, minlength=len(sizes))
        drawn = np.bincount(groups, weights=drawn, minlength=len(sizes))
        raw = np.bincount(strata, weights=1 / chances, minlength=len(sizes))
        weights = (sizes[strata] / raw[strata]) / chances
        unsure = np.clip(1 - chances * (counts[strata] / drawn[strata]), 0.0, 1.0)
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


def _together(counts: NDArray[np.intp], sizes: Floats, drawn: Floats) -> Places:
    """Return for each stratum the one that it is counted with, so that at least two are known of each or all are."""
    groups = np.arange(len(sizes))
    alone = (counts < 2) & (counts < sizes) & (drawn > 0)
    if not alone.any() or len(sizes) < 2:
        return groups
    others = np.flatnonzero(~alone & (counts > 0))
    joined = np.flatnonzero(alone)
    if counts[joined].sum() < 2 and len(others):
        joined = np.append(joined, others[np.argmin(sizes[others])])
    groups[joined] = joined[-1]
    return groups
