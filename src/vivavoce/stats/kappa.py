"""Cohen's kappa of pairs of verdicts that have weights, and its interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.bootstrap import Floats
from vivavoce.stats.corrected import table_of
from vivavoce.stats.intervals import wilson

Bools = Sequence[bool] | NDArray[np.bool_]


def kappa(one: Bools, other: Bools, weights: Sequence[float] | None = None) -> float | None:
    """Return the agreement of pairs beyond chance; None where `other`, the labels, is not of both kinds.

    For labels of one kind it would be 0, whatever the other side says.

    Source: J. Cohen, A Coefficient of Agreement for Nominal Scales (1960).
    """
    first, second, w = _arrays(one, other, weights)
    chance = _by_chance(first, second, w)
    if chance is None:
        return None
    same = float(np.average(first == second, weights=w))
    return (same - chance) / (1 - chance)


def kappa_interval(
    one: Bools, other: Bools, clusters: Sequence[Hashable], weights: Sequence[float] | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the two-sided interval of `kappa`, None where there is no kappa; `clusters` names the sample of each pair.

    It is that of `Agreement.kappa_interval`: agreement by chance is taken as it is, and the observed one has Wilson's
    interval for as many independent pairs as they are worth, given their clusters and weights (see `table_of`).
    """
    first, second, w = _arrays(one, other, weights)
    chance = _by_chance(first, second, w)
    if chance is None:
        return None
    same = (first == second).astype(np.float64).tolist()
    whole = table_of([1.0] * len(same), same, clusters, w.tolist())
    low, high = wilson(whole.tp, whole.tp + whole.fn, level)
    return max(-1.0, (low - chance) / (1 - chance)), (high - chance) / (1 - chance)


def _arrays(one: Bools, other: Bools, weights: Sequence[float] | None) -> tuple[Floats, Floats, Floats]:
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return first, second, np.ones(len(first)) if weights is None else np.asarray(weights, dtype=np.float64)


def _by_chance(first: Floats, second: Floats, w: Floats) -> float | None:
    """Return how often both sides would agree if neither knew of the other; None where the second has one kind."""
    if not len(second) or second.min() == second.max():
        return None
    yes, also = float(np.average(first, weights=w)), float(np.average(second, weights=w))
    return yes * also + (1 - yes) * (1 - also)
