"""Resampling: the bootstrap, and tests that exchange units between sides or flip the signs of differences."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = NDArray[np.float64]
"""How often each value was drawn: a row for each draw, a column for each value."""

BOOTSTRAP_DRAWS = 2000
BOOTSTRAP_SEED = 20_040_229
"""Equal data have equal intervals."""

_MAX_WEIGHTS = 4_000_000
"""Weights that are held at a time, 8 bytes each."""


def bootstrap(
    figure: Callable[[Weights], Floats],
    clusters: Sequence[Hashable],
    level: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = BOOTSTRAP_SEED,
) -> tuple[float, float] | None:
    """Return the two-sided interval of a figure, by percentiles over draws with replacement.

    `clusters` names for each value the sample it came from; samples are drawn, each with all its values. `figure` gets
    weights and returns one number for each draw, NaN where it cannot be computed. None is returned where nothing can be
    said: there is one sample, the figure exists in less than half of the draws, or all are equal, which shows no spread
    and is not a certainty.

    Source: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    numbers: dict[Hashable, int] = {}
    of = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)
    if len(numbers) < 2:
        return None
    random = np.random.default_rng(seed)
    values = np.concatenate([figure(times[:, of]) for times in _times(random, len(numbers), draws, len(of))])
    estimates = values[~np.isnan(values)]
    if len(estimates) < draws / 2 or estimates.min() == estimates.max():
        return None
    low, high = np.quantile(estimates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _times(random: np.random.Generator, samples: int, draws: int, values: int) -> Generator[Weights]:
    """Yield how often each sample is drawn, some draws at a time."""
    some = max(1, _MAX_WEIGHTS // values)
    for start in range(0, draws, some):
        rows = [random.integers(0, samples, samples) for _ in range(min(some, draws - start))]
        yield np.array([np.bincount(row, minlength=samples) for row in rows], dtype=np.float64)


MAX_SUMS = 100_000
"""Distinct sums up to which the test is exact."""
SIGN_DRAWS = 9_999
"""Random signs for each difference, where there are more sums."""
_SIGN_SEED = 69
_MAX_STEP = 2_000_000
"""Sums that are computed at a time, before equal ones are merged."""
_SIGN_BATCH = 2_000_000
"""Random signs that are drawn at a time."""
_UNIT = 1e-9
"""Differences count in these units, so that equal sums of decimal fractions are equal."""


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """Return the one-sided p value of a sum of differences this low, if each could as well have the other sign.

    That is so where both sides answer alike. Then the p value is at most a rate in at most this rate of comparisons,
    for any differences, within any bounds. It does not test the mean: differences with a mean of 0 that are not
    symmetric, such as many small losses and a rare large gain, can have a low p value.

    It is exact up to `MAX_SUMS` distinct sums. Beyond, (k + 1) / (`SIGN_DRAWS` + 1) for k of `SIGN_DRAWS` random draws
    with a fixed seed that are as low, which is never too low on average.

    Source: R. A. Fisher, The Design of Experiments (1935), section 21; for random draws B. Phipson and G. K. Smyth,
    Permutation P-values Should Never Be Zero, Statistical Applications in Genetics and Molecular Biology 9 (2010).
    """
    units = np.rint(np.asarray(differences, dtype=np.float64) / _UNIT).astype(np.int64)
    limit = int(units.sum()) + len(units)  # each difference may be rounded by half a unit
    sizes, counts = np.unique(np.abs(units[units != 0]), return_counts=True)
    exact = _exact(sizes, counts, limit)
    return _sample_tail(np.abs(units).astype(np.float64), limit) if exact is None else exact


def _exact(sizes: NDArray[np.int64], counts: NDArray[np.intp], limit: int) -> float | None:
    """Return the chance of a sum up to a limit under random signs, None where there are too many sums."""
    sums, chances = np.zeros(1, dtype=np.int64), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        if len(sums) * (count + 1) > _MAX_STEP:
            return None
        steps = size * (2 * np.arange(count + 1, dtype=np.int64) - count)
        every = (sums[:, None] + steps[None, :]).ravel()
        weights = (chances[:, None] * _half_binomial(count)[None, :]).ravel()
        sums, places = np.unique(every, return_inverse=True)
        if len(sums) > MAX_SUMS:
            return None
        chances = np.bincount(places.ravel(), weights=weights)
    return min(1.0, float(chances[sums <= limit].sum()))


def _half_binomial(count: int) -> NDArray[np.float64]:
    """Return the chances of 0 to `count` heads of fair coins."""
    ways = np.concatenate([[0.0], np.log(np.arange(1, count + 1)).cumsum()])
    return np.exp(ways[-1] - ways - ways[::-1] - count * np.log(2))


def _sample_tail(sizes: NDArray[np.float64], limit: int) -> float:
    """Return the share of random signs, and of those that were seen, with a sum up to a limit.

    Sums of single precision count as this low if rounding may have raised them.
    """
    random = np.random.default_rng(_SIGN_SEED)
    width, parts, most = (len(sizes) + 7) // 8, sizes.astype(np.float32), limit + 1e-6 * float(sizes.sum())
    low, left = 0, SIGN_DRAWS
    while left:
        rows = min(left, max(1, _SIGN_BATCH // len(sizes)))
        bits = np.unpackbits(np.frombuffer(random.bytes(rows * width), dtype=np.uint8).reshape(rows, width), axis=1)
        minus = bits[:, : len(sizes)].astype(np.float32)
        low += int(np.count_nonzero(sizes.sum() - 2 * (minus @ parts).astype(np.float64) <= most))
        left -= rows
    return (low + 1) / (SIGN_DRAWS + 1)


Bools = NDArray[np.bool_]

STAGES = ((500, 0.2), (1_500, 0.02), (8_000, 0.0))
"""How many exchanges are drawn at a time, and from which p value on no more are: it is exact enough there."""
EXCHANGE_SEED = 20_101_130
"""Equal data have equal p values."""

_CLOSE = 1e-9
"""The part of a statistic by which it may be smaller than another and still count as equal: rounding."""
_BATCH = 4_000_000
"""Random numbers that are held at a time, 8 bytes each."""
_MAX_CHOICES = 500
"""Ways to choose cells of one stratum that are listed; of more, as many are drawn."""

Stratum = tuple[tuple[float, ...], int]
"""The residuals of the cells of one stratum, and how many of these cells are inside."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Units on two sides, by residual: how many are only `inside`, only `outside`, and strata with cells on both.

    Under the null hypothesis the sides of units are exchangeable, and so are the sides of the cells of a stratum.
    """

    inside: Mapping[float, int]
    outside: Mapping[float, int]
    strata: Mapping[Stratum, int]

    def p_value(self) -> float:
        """Return how often the sum of residuals inside is as far from its expectation as this one, or farther.

        Where every unit passes or fails and no stratum is on both sides, this is Fisher's exact test. In other cases
        random exchanges are drawn, 10,000 where it matters, with the observed one among them.

        Source: R. A. Fisher, The Design of Experiments (1935); for the draws B. Phipson and G. K. Smyth, Permutation
        P-values Should Never Be Zero, Statistical Applications in Genetics and Molecular Biology 9 (2010).
        """
        residuals = sorted({*self.inside, *self.outside})
        counts = np.array(
            [self.inside.get(residual, 0) + self.outside.get(residual, 0) for residual in residuals], dtype=np.int64
        )
        values = np.array(residuals, dtype=np.float64)
        sample = np.array([self.inside.get(residual, 0) for residual in residuals], dtype=np.int64)
        number = int(sample.sum())
        if len(residuals) == 2 and not self.strata:
            return _hypergeometric(int(sample[1]), number, int(counts[1]), int(counts.sum()))
        center = float(values @ counts) * number / max(1, int(counts.sum()))
        center += sum(times * inside * sum(cells) / len(cells) for (cells, inside), times in self.strata.items())
        observed = float(values @ sample) + sum(
            times * sum(cells[:inside]) for (cells, inside), times in self.strata.items()
        )
        distance = abs(observed - center)
        random = np.random.default_rng(EXCHANGE_SEED)
        farther = draws = 0
        for size, enough in STAGES:
            sums = np.zeros(size)
            if number and counts.sum() > number:
                sums += random.multivariate_hypergeometric(counts, number, size=size, method="marginals") @ values
            else:
                sums += float(values @ sample)
            for stratum, times in self._merge_strata():
                sums += _stratum_sums(random, stratum, times, size)
            farther += int((np.abs(sums - center) >= distance - _CLOSE * max(1.0, distance)).sum())
            draws += size
            if (farther + 1) / (draws + 1) > enough:
                break
        return (farther + 1) / (draws + 1)

    def _merge_strata(self) -> Iterator[tuple[Stratum, int]]:
        """Yield strata with the same cells once, whichever of them are inside."""
        merged: dict[Stratum, int] = {}
        for (cells, inside), times in self.strata.items():
            key = (tuple(sorted(cells)), inside)
            merged[key] = merged.get(key, 0) + times
        yield from sorted(merged.items())


def p_values(means: Floats, is_inside: Bools) -> list[float]:
    """Return for each column how often Welch's t is as far from 0 where units change sides at random, or farther.

    A row holds the means of one unit, NaN where one is not known. The test is exact where both sides are alike, and
    close to its level for many units where only their means are equal. Draws are made as for `Exchange.p_value`.

    Source: A. Janssen, Studentized Permutation Tests for Non-i.i.d. Hypotheses and the Generalized Behrens-Fisher
    Problem, Statistics and Probability Letters 36 (1997).
    """
    units, columns = means.shape
    if not units:
        return [1.0] * columns
    smaller = is_inside if 2 * is_inside.sum() <= units else ~is_inside
    number = int(smaller.sum())
    known = ~np.isnan(means)
    counts = known.sum(axis=0)
    values = np.where(known, means - np.nansum(means, axis=0) / np.maximum(counts, 1), 0.0)
    sums = _Sums.of(values, known)
    observed = sums.distance(smaller[None, :].astype(np.float64))[0]
    farther, draws = np.zeros(columns), np.zeros(columns)
    random = np.random.default_rng(EXCHANGE_SEED)
    open_ = np.ones(columns, dtype=np.bool_)
    for size, enough in STAGES:
        some = max(1, _BATCH // units)
        here, limit = sums.part(open_), observed[open_] * (1 - _CLOSE)
        for start in range(0, size, some):
            rows = min(some, size - start)
            masks = np.zeros((rows, units))
            if number:
                columns_inside = np.argpartition(random.random((rows, units)), number - 1, axis=1)[:, :number]
                np.put_along_axis(masks, columns_inside, 1.0, axis=1)
            farther[open_] += (here.distance(masks) >= limit).sum(axis=0)
            draws[open_] += rows
        open_ &= (farther + 1) / (draws + 1) <= enough
        if not open_.any():
            break
    return ((farther + 1) / (draws + 1)).tolist()


@dataclass(frozen=True, slots=True)
class _Sums:
    """The values of units, a column for each figure, their squares, and which are known."""

    values: Floats
    squares: Floats
    known: Floats

    @classmethod
    def of(cls, values: Floats, known: Bools) -> _Sums:
        """Return them, scaled so that squares do not overflow."""
        largest = np.abs(values).max(axis=0, initial=0.0)
        scaled = values / np.where(largest > 0, largest, 1.0)
        return cls(scaled, scaled**2, known.astype(np.float64))

    def part(self, columns: Bools) -> _Sums:
        """Return some columns."""
        return _Sums(self.values[:, columns], self.squares[:, columns], self.known[:, columns])

    def distance(self, masks: Floats) -> Floats:
        """Return the distance of Welch's t from 0 for each mask of units and each column; 0 without two on a side."""
        n, s, q = masks @ self.known, masks @ self.values, masks @ self.squares
        m, r, u = (each.sum(axis=0) - part for each, part in zip(self._columns, (n, s, q), strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = (s / n - r / m) ** 2
            spread = _mean_variance(n, s, q) + _mean_variance(m, r, u)
            t = np.sqrt(squared / spread)
        t = np.where(squared <= _CLOSE**2, 0.0, np.where(spread <= _CLOSE**2, np.inf, t))
        return np.where((n > 1) & (m > 1), t, 0.0)

    @property
    def _columns(self) -> tuple[Floats, Floats, Floats]:
        return self.known, self.values, self.squares


def _mean_variance(n: Floats, s: Floats, q: Floats) -> Floats:
    """Return the variance of means of n values with a sum and a sum of squares."""
    return np.maximum(q - s * s / n, 0.0) / (n - 1) / n


def _hypergeometric(hits: int, inside: int, all_hits: int, units: int) -> float:
    """Return the two-sided p value of `hits` among `inside` units, of `all_hits` among all: Fisher's exact test."""
    first, last = max(0, inside - (units - all_hits)), min(inside, all_hits)
    places = np.arange(first, last + 1)
    ratios = (all_hits - places[:-1]) * (inside - places[:-1])
    ratios = ratios / ((places[:-1] + 1) * (units - all_hits - inside + places[:-1] + 1))
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    chances = np.exp(logs - logs.max())
    expected = inside * all_hits / units
    far = np.abs(places - expected) >= abs(hits - expected) - _CLOSE
    return min(1.0, float(chances[far].sum() / chances.sum()))


def _stratum_sums(random: np.random.Generator, stratum: Stratum, times: int, size: int) -> Floats:
    """Return sums of the inside residuals of some strata alike, in `size` random exchanges of their cells."""
    cells, inside = stratum
    if comb(len(cells), inside) <= _MAX_CHOICES:
        sums = [sum(cell_values) for cell_values in combinations(cells, inside)]
    else:
        array = np.array(cells)
        sums = [float(random.permutation(array)[:inside].sum()) for _ in range(_MAX_CHOICES)]
    counts: Floats = random.multinomial(times, _even(sums), size=size).astype(np.float64)
    return counts @ np.array(sums)


def _even(values: Sequence[float]) -> Floats:
    return np.full(len(values), 1 / len(values))
