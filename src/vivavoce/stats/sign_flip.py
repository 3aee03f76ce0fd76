"""The sign-flip test of paired differences: whether two sides that answer alike would differ as much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_SUMS = 100_000
"""Distinct sums up to which the test is exact."""
DRAWS = 9_999
"""Random signs for each difference, where there are more sums."""
_SEED = 69
_MAX_STEP = 2_000_000
"""Sums that are computed at a time, before equal ones are merged."""
_BATCH = 2_000_000
"""Random signs that are drawn at a time."""
_UNIT = 1e-9
"""Differences count in these units, so that equal sums of decimal fractions are equal."""


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """Return the one-sided p value of a sum of differences this low, if each could as well have the other sign.

    That is so where both sides answer alike. Then the p value is at most a rate in at most this rate of comparisons,
    for any differences, within any bounds. It does not test the mean: differences with a mean of 0 that are not
    symmetric, such as many small losses and a rare large gain, can have a low p value.

    It is exact up to `MAX_SUMS` distinct sums. Beyond, (k + 1) / (`DRAWS` + 1) for k of `DRAWS` random draws with a
    fixed seed that are as low, which is never too low on average.

    Source: R. A. Fisher, The Design of Experiments (1935), section 21; for random draws B. Phipson and G. K. Smyth,
    Permutation P-values Should Never Be Zero, Statistical Applications in Genetics and Molecular Biology 9 (2010).
    """
    units = np.rint(np.asarray(differences, dtype=np.float64) / _UNIT).astype(np.int64)
    limit = int(units.sum()) + len(units)  # each difference may be rounded by half a unit
    sizes, counts = np.unique(np.abs(units[units != 0]), return_counts=True)
    exact = _exact(sizes, counts, limit)
    return _drawn(np.abs(units).astype(np.float64), limit) if exact is None else exact


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


def _drawn(sizes: NDArray[np.float64], limit: int) -> float:
    """Return the share of random signs, and of those that were seen, with a sum up to a limit.

    Sums of single precision count as this low if rounding may have raised them.
    """
    random = np.random.default_rng(_SEED)
    width, parts, most = (len(sizes) + 7) // 8, sizes.astype(np.float32), limit + 1e-6 * float(sizes.sum())
    low, left = 0, DRAWS
    while left:
        rows = min(left, max(1, _BATCH // len(sizes)))
        bits = np.unpackbits(np.frombuffer(random.bytes(rows * width), dtype=np.uint8).reshape(rows, width), axis=1)
        minus = bits[:, : len(sizes)].astype(np.float32)
        low += int(np.count_nonzero(sizes.sum() - 2 * (minus @ parts).astype(np.float64) <= most))
        left -= rows
    return (low + 1) / (DRAWS + 1)
