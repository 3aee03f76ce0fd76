"""Intervals of any figure by drawing the data again and again: the bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

DRAWS = 2000
SEED = 20_040_229
"""Equal data have equal intervals."""


def bootstrap(
    figure: Callable[[Places], float | None],
    clusters: Sequence[Hashable],
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = SEED,
) -> tuple[float, float] | None:
    """Return the two-sided interval of a figure, by percentiles over draws with replacement.

    `clusters` names for each value the sample it came from; samples are drawn, each with all its values. `figure` gets
    the places of the values that were drawn, and returns None where it cannot be computed. None is returned where
    nothing can be said: there is one sample, the figure exists in less than half of the draws, or all are equal, which
    shows no spread and is no certainty.

    Source: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    groups = _groups(clusters)
    if len(groups) < 2:
        return None
    random = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(draws):
        drawn: list[int] = random.integers(0, len(groups), len(groups)).tolist()
        value = figure(np.concatenate([groups[place] for place in drawn]))
        if value is not None:
            found.append(value)
    if len(found) < draws / 2 or min(found) == max(found):
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _groups(clusters: Sequence[Hashable]) -> list[Places]:
    """Return the places of the values of each cluster."""
    members: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(place)
    return [np.array(places, dtype=np.intp) for places in members.values()]
