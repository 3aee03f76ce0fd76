"""Cohen's kappa of weighted pairs of verdicts, for one weighting or for many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.bootstrap import Floats, Weights

Bools = Sequence[bool] | NDArray[np.bool_]


def kappas(one: Bools, other: Bools, weights: Weights) -> Floats:
    """Return the agreement beyond chance for each row of weights, NaN where chance alone agrees always.

    Source: J. Cohen, A Coefficient of Agreement for Nominal Scales (1960).
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    whole = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        yes, also = weights @ first / whole, weights @ second / whole
        same = weights @ (first == second).astype(np.float64) / whole
        chance = yes * also + (1 - yes) * (1 - also)
        return np.where(1 - chance > 1e-12, (same - chance) / (1 - chance), np.nan)
