"""Intervals of any figure by drawing the data again and again: the bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = NDArray[np.float64]
"""How often each value was drawn: a row for each draw, a column for each value."""

DRAWS = 2000
SEED = 20_040_229
"""Equal data have equal intervals."""

_AT_ONCE = 4_000_000
"""Weights that are held at a time, 8 bytes each."""


def bootstrap(
    figure: Callable[[Weights], Floats],
    clusters: Sequence[Hashable],
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = SEED,
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
    found = values[~np.isnan(values)]
    if len(found) < draws / 2 or found.min() == found.max():
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _times(random: np.random.Generator, samples: int, draws: int, values: int) -> Generator[Weights]:
    """Yield how often each sample is drawn, some draws at a time."""
    some = max(1, _AT_ONCE // values)
    for start in range(0, draws, some):
        rows = [random.integers(0, samples, samples) for _ in range(min(some, draws - start))]
        yield np.array([np.bincount(row, minlength=samples) for row in rows], dtype=np.float64)
