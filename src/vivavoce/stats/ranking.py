"""How far one order of things agrees with another: Spearman's correlation, and the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = Sequence[float] | Floats


def spearman(one: Numbers, other: Numbers) -> float | None:
    """Return the correlation of the ranks of two lists, -1 to 1; None where all values of one side are equal.

    Source: C. Spearman, The Proof and Measurement of Association between Two Things (1904).

    Raises:
        ValueError: one list is longer than the other.
    """
    if len(one) != len(other):
        raise ValueError(f"both lists need the same length, got {len(one)} and {len(other)}")
    if len(one) < 2:
        return None
    first, second = _centred(ranks(one)), _centred(ranks(other))
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size else None


def auroc(values: Numbers, truth: Sequence[bool] | NDArray[np.bool_]) -> float | None:
    """Return how often a true one has a higher value than a false one, equal ones counting half; None without both.

    0.5 is chance. Source: J. A. Hanley and B. J. McNeil, The Meaning and Use of the Area under a ROC Curve (1982).

    Raises:
        ValueError: one list is longer than the other.
    """
    if len(values) != len(truth):
        raise ValueError(f"both lists need the same length, got {len(values)} and {len(truth)}")
    true = np.asarray(truth, dtype=np.bool_)
    hits = int(true.sum())
    misses = len(true) - hits
    if not hits or not misses:
        return None
    above = float(ranks(values)[true].sum()) - hits * (hits + 1) / 2
    return above / (hits * misses)


def ranks(values: Numbers) -> Floats:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    _, place, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def _centred(values: Floats) -> Floats:
    return values - values.mean()
