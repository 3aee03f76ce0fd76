"""Can two groups be distinguished? A regularised logistic regression, cross-fitted: no value scores itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.resampling import Floats

FOLDS = 5
SEED = 20_261_126
"""Equal data are split alike."""

_STEPS = 25
_CLOSE = 1e-6
_FARTHEST = 8.0
"""Standard deviations at which a value is cut, so that a single one does not decide a fit."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted regression: a row's score is `bias` + the sum over columns of weight x (value - mean) / spread."""

    weights: Floats
    bias: float
    mean: Floats
    spread: Floats

    def contributions(self, rows: Floats) -> Floats:
        """Return what each value adds to the score of its row, in the shape of the rows; a missing value adds 0."""
        return _scale(rows, self.mean, self.spread) * self.weights

    def scores(self, rows: Floats) -> Floats:
        """Return the log odds of each row to be of the group that was called True."""
        return self.contributions(rows).sum(axis=1) + self.bias


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores and contributions of all rows, each from the fit to the folds that it is not in."""

    scores: Floats
    contributions: Floats


def fit_logistic(rows: Floats, truth: NDArray[np.bool_], penalty: float) -> Fit:
    """Fit the log odds of `truth` to rows of numbers; NaN is a missing value, and stands for the mean of its column.

    Both groups weigh the same, however large they are. Columns are brought to the spread 1, and cut at 8. `penalty` is
    that on half the squared length of the weights, next to a loss that is the sum over as many rows as there are.

    Source: T. Hastie, R. Tibshirani and J. Friedman, The Elements of Statistical Learning (2009), 4.4: Newton's method.
    """
    known = ~np.isnan(rows)
    number = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, rows, 0.0).sum(axis=0) / number
    spread = np.sqrt((np.where(known, rows - mean, 0.0) ** 2).sum(axis=0) / number)
    spread = np.where(spread > 1e-9, spread, np.inf)
    x = np.hstack([_scale(rows, mean, spread), np.ones((len(rows), 1))])
    y = truth.astype(np.float64)
    w = np.where(truth, 0.5 / max(int(truth.sum()), 1), 0.5 / max(int((~truth).sum()), 1)) * len(rows)
    ridge = np.full(x.shape[1], penalty)
    ridge[-1] = 1e-9
    beta = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = _sigmoid(x @ beta)
        gradient = x.T @ (w * (p - y)) + ridge * beta
        curve = (x * (w * np.maximum(p * (1 - p), 1e-6))[:, None]).T @ x + np.diag(ridge)
        step = np.linalg.solve(curve, gradient)
        beta = beta - step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
        if float(np.abs(step).max()) < _CLOSE:
            break
    return Fit(beta[:-1], float(beta[-1]), mean, spread)


def cross_validated(
    rows: Floats, truth: NDArray[np.bool_], clusters: Sequence[Hashable], penalty: float, folds: int = FOLDS
) -> Scored:
    """Score each row by a fit to the folds without its cluster; each fold has about the same part of both groups.

    Source: M. Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, JRSS B 36 (1974).
    """
    fold = _folds(truth, clusters, folds)
    scores, contributions = np.zeros(len(rows)), np.zeros(rows.shape)
    for number in range(folds):
        inside = fold == number
        if not inside.any():
            continue
        fit = fit_logistic(rows[~inside], truth[~inside], penalty)
        contributions[inside] = fit.contributions(rows[inside])
        scores[inside] = contributions[inside].sum(axis=1) + fit.bias
    return Scored(scores, contributions)


def _folds(truth: NDArray[np.bool_], clusters: Sequence[Hashable], folds: int) -> NDArray[np.intp]:
    """Return the fold of each row: whole clusters, dealt out in a drawn order, those with a True row first."""
    numbers: dict[Hashable, int] = {}
    of = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)
    first = np.zeros(len(numbers), dtype=bool)
    first[of[truth]] = True
    shuffle = np.random.default_rng(SEED).permutation(len(numbers))
    order = np.concatenate([shuffle[first[shuffle]], shuffle[~first[shuffle]]])
    fold = np.empty(len(numbers), dtype=np.intp)
    fold[order] = np.arange(len(order)) % folds
    return fold[of]


def _scale(rows: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.clip(
        np.nan_to_num((rows - mean) / spread, nan=0.0, posinf=_FARTHEST, neginf=-_FARTHEST), -_FARTHEST, _FARTHEST
    )


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))
