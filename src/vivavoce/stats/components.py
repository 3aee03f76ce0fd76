"""Components of variance: how much of the spread of scores is of the samples, of the target and of the judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vivavoce.stats.intervals import mean_interval

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


WORST = 0.25
"""The largest variance of scores from 0 to 1: half of them 0 and half of them 1."""
PILOT_LEVEL = 0.8
"""The level of the two-sided interval of a variance: its upper end exceeds the true variance in nine of ten pilots."""


@dataclass(frozen=True, slots=True)
class TrialVariance:
    """The variance of scores from 0 to 1 between trials of a sample, as a pilot shows it, with its interval.

    Where trials do not `repeat`, it is at most the variance of all scores, which is given instead; `low` is then 0.
    """

    low: float
    value: float
    high: float
    repeat: bool


def trial_variance(scores: Mapping[str, Sequence[float]]) -> TrialVariance | None:
    """Return the variance between trials of each sample from its scores, None without a score.

    With repeated trials it is the pooled variance within samples, and its interval is that of the mean of their
    variances, of which none is above 1/2 (see `mean_interval`). Without, passes and failures have the variance
    p (1 - p) for every p in the interval of their rate; other scores that of the mean of squared distances.

    Source: R. H. Browne, On the Use of a Pilot Sample for Sample Size Determination, Statistics in Medicine 14 (1995):
    plan with the upper end, for a variance from a small pilot is too small in half of all pilots.
    """
    repeated = [trials for trials in scores.values() if len(trials) > 1]
    if repeated:
        found = mean_interval(
            [_variance(trials) for trials in repeated],
            level=PILOT_LEVEL,
            bounds=(0.0, 0.5),
            weights=[float(len(trials) - 1) for trials in repeated],
        )
        return found and TrialVariance(
            min(WORST, found.low or 0.0), min(WORST, found.mean), min(WORST, found.high or WORST), repeat=True
        )
    values = [value for trials in scores.values() for value in trials]
    rate = mean_interval(values, level=PILOT_LEVEL)
    if rate is None:
        return None
    value = _variance(values) if len(values) > 1 else WORST
    if {0.0, 1.0}.issuperset(values):
        near = min(max(0.5, rate.low or 0.0), 1.0 if rate.high is None else rate.high)
        return TrialVariance(0.0, min(WORST, value), near * (1 - near), repeat=False)
    squares = mean_interval([(each - rate.mean) ** 2 for each in values], level=PILOT_LEVEL)
    high = WORST if squares is None or squares.high is None else min(WORST, squares.high)
    return TrialVariance(0.0, min(WORST, value), max(high, min(WORST, value)), repeat=False)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
