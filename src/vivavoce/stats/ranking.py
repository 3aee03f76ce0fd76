"""How far one order of things agrees with another: Spearman's correlation, and the area under the ROC curve.

Each is there for one list, and for many weightings of it at once, which the bootstrap needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.bootstrap import Floats, Weights

Numbers = Sequence[float] | Floats
Bools = Sequence[bool] | NDArray[np.bool_]


def spearman(one: Numbers, other: Numbers) -> float | None:
    """Return the correlation of the ranks of two lists, -1 to 1; None where all values of one side are equal.

    Source: C. Spearman, The Proof and Measurement of Association between Two Things (1904).

    Raises:
        ValueError: one list is longer than the other.
    """
    return _single(spearmans(one, other, np.ones((1, len(one)))))


def spearmans(one: Numbers, other: Numbers, weights: Weights) -> Floats:
    """Return what `spearman` does for each row of weights, NaN for None."""
    _same_length(one, other)
    middle = (weights.sum(axis=1, keepdims=True) + 1) / 2
    first, second = (_Order.of(side).ranks(weights) - middle for side in (one, other))
    return _over(
        (weights * first * second).sum(axis=1),
        np.sqrt((weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1)),
    )


def auroc(values: Numbers, truth: Bools) -> float | None:
    """Return how often a true one has a higher value than a false one, equal ones counting half; None without both.

    0.5 is chance. Source: J. A. Hanley and B. J. McNeil, The Meaning and Use of the Area under a ROC Curve (1982).

    Raises:
        ValueError: one list is longer than the other.
    """
    return _single(aurocs(values, truth, np.ones((1, len(values)))))


def aurocs(values: Numbers, truth: Bools, weights: Weights) -> Floats:
    """Return what `auroc` does for each row of weights, NaN for None."""
    _same_length(values, truth)
    order = _Order.of(values)
    hits = order.grouped(weights * np.asarray(truth, dtype=np.float64))
    misses = order.grouped(weights) - hits
    above = (hits * (np.cumsum(misses, axis=1) - misses / 2)).sum(axis=1)
    return _over(above, hits.sum(axis=1) * misses.sum(axis=1))


def ranks(values: Numbers) -> Floats:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    return _Order.of(values).ranks(np.ones((1, len(values))))[0]


@dataclass(frozen=True, slots=True)
class _Order:
    """Values in their order: the places of the sorted ones, where each group of equal ones starts, and whose it is."""

    places: NDArray[np.intp]
    starts: NDArray[np.intp]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, values: Numbers) -> _Order:
        given = np.asarray(values, dtype=np.float64)
        places = np.argsort(given, kind="stable")
        ordered = given[places]
        fresh = np.concatenate([np.ones(min(1, len(given)), dtype=np.bool_), ordered[1:] != ordered[:-1]])
        group = np.empty(len(given), dtype=np.intp)
        group[places] = np.cumsum(fresh) - 1
        return cls(places, np.flatnonzero(fresh), group)

    def grouped(self, weights: Weights) -> Floats:
        """Return the weight of each group of equal values, lowest first."""
        if not len(self.starts):
            return np.zeros((len(weights), 0))
        return np.add.reduceat(weights[:, self.places], self.starts, axis=1)

    def ranks(self, weights: Weights) -> Floats:
        """Return the mean rank of each value, where it stands as often as its weight says."""
        each = self.grouped(weights)
        return (np.cumsum(each, axis=1) - (each - 1) / 2)[:, self.group]


def _over(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)


def _single(found: Floats) -> float | None:
    return None if np.isnan(found[0]) else float(found[0])


def _same_length(
    one: Sequence[object] | Floats | NDArray[np.bool_], other: Sequence[object] | Floats | NDArray[np.bool_]
) -> None:
    if len(one) != len(other):
        raise ValueError(f"both lists need the same length, got {len(one)} and {len(other)}")
