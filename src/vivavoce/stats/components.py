"""Components of variance: how much of the spread of scores is of the samples, of the target and of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who only reads what is stored need not load it
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Components:
    """Variances of a single score: between samples, between trials of a sample, and between judgements of a trial.

    One is None where nothing repeats at its level. Without repeated judgements `trials` holds that of the judge, too;
    without repeated trials `samples` holds what is left of the lower ones.
    """

    samples: float | None
    trials: float | None
    judgements: float | None


def components(scores: Mapping[str, Sequence[Sequence[float]]]) -> Components:
    """Return the components of variance of scores by sample, by trial, with one or more judgements of each trial.

    For a samples, b trials and N scores, n_ij of trial j and n_i of sample i, mean squares of the nested analysis of
    variance are MSE = sum (y_ijk - mean_ij)^2 / (N - b), MSB = sum n_ij (mean_ij - mean_i)^2 / (b - a) and
    MSA = sum n_i (mean_i - mean)^2 / (a - 1), with the expectations E MSE = e, E MSB = e + k1 t, E MSA = e + k2 t +
    k3 s, where k1 = (N - sum n_ij^2 / n_i) / (b - a), k2 = (sum n_ij^2 / n_i - sum n_ij^2 / N) / (a - 1) and
    k3 = (N - sum n_i^2 / N) / (a - 1). They are solved for e, t and s; one below 0 is 0.

    Source: S. R. Searle, G. Casella and C. E. McCulloch, Variance Components (1992), chapter 5: analysis of variance
    estimation for unbalanced nested classifications.
    """
    import numpy as np

    trials = [np.asarray(trial, dtype=np.float64) for one in scores.values() for trial in one if len(trial)]
    places = [place for place, one in enumerate(scores.values()) for trial in one if len(trial)]
    if not trials:
        return Components(None, None, None)
    n_ij: NDArray[np.float64] = np.array([len(one) for one in trials], dtype=np.float64)
    means: NDArray[np.float64] = np.array([one.mean() for one in trials])
    _, sample = np.unique(np.array(places), return_inverse=True)
    n_i = np.bincount(sample, weights=n_ij)
    mean_i = np.bincount(sample, weights=n_ij * means) / n_i
    n, a, b = float(n_ij.sum()), len(n_i), len(trials)
    squares = n_ij**2
    e = None if n == b else float(sum(((one - one.mean()) ** 2).sum() for one in trials)) / (n - b)
    t = s = None
    if b > a:
        msb = float((n_ij * (means - mean_i[sample]) ** 2).sum()) / (b - a)
        k1 = (n - float((squares / n_i[sample]).sum())) / (b - a)
        t = max(0.0, (msb - (e or 0.0)) / k1)
    if a > 1:
        msa = float((n_i * (mean_i - float((n_ij * means).sum()) / n) ** 2).sum()) / (a - 1)
        k2 = (float((squares / n_i[sample]).sum()) - float(squares.sum()) / n) / (a - 1)
        k3 = (n - float((n_i**2).sum()) / n) / (a - 1)
        s = max(0.0, (msa - (e or 0.0) - k2 * (t or 0.0)) / k3)
    return Components(samples=s, trials=t, judgements=e)
