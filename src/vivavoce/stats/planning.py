"""How many samples, trials and labels a difference takes to be seen, and where scores vary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vivavoce.stats.intervals import LEVEL, mean_interval, t_quantile

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

    trials = [
        np.asarray(trial, dtype=np.float64)
        for sample_scores in scores.values()
        for trial in sample_scores
        if len(trial)
    ]
    places = [place for place, sample_scores in enumerate(scores.values()) for trial in sample_scores if len(trial)]
    if not trials:
        return Components(None, None, None)
    n_ij: NDArray[np.float64] = np.array([len(trial) for trial in trials], dtype=np.float64)
    means: NDArray[np.float64] = np.array([trial.mean() for trial in trials])
    _, sample = np.unique(np.array(places), return_inverse=True)
    n_i = np.bincount(sample, weights=n_ij)
    mean_i = np.bincount(sample, weights=n_ij * means) / n_i
    n, a, b = float(n_ij.sum()), len(n_i), len(trials)
    squares = n_ij**2
    e = None if n == b else float(sum(((trial - trial.mean()) ** 2).sum() for trial in trials)) / (n - b)
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
    variances, each at most 1/2 (see `mean_interval`). Without, passes and failures have the variance
    p (1 - p) for every p in the interval of their rate; other scores that of the mean of squared distances.

    Source: R. H. Browne, On the Use of a Pilot Sample for Sample Size Determination, Statistics in Medicine 14 (1995):
    plan with the upper end, for a variance from a small pilot is too small in half of all pilots.
    """
    repeated = [trials for trials in scores.values() if len(trials) > 1]
    if repeated:
        interval = mean_interval(
            [_variance(trials) for trials in repeated],
            level=PILOT_LEVEL,
            bounds=(0.0, 0.5),
            weights=[float(len(trials) - 1) for trials in repeated],
        )
        return interval and TrialVariance(
            min(WORST, interval.low or 0.0), min(WORST, interval.mean), min(WORST, interval.high or WORST), repeat=True
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


MAX_SAMPLES = 10_000_000
"""Samples beyond which nobody plans."""
UNSEEN = 1.5
"""How much more than the formula of a normal mean the sum of all differences must come to.

The interval of a comparison counts one more sample that changed the other way, and half a sample is the step from one
possible sum to the next. Measured for passes and failures; see `bench/promises.py`.
"""


def spread(difference: float, within: float, trials: int) -> float:
    """Return the largest variance, between samples, of a change of the mean by `difference`.

    `within` is the variance between trials of a sample, with `trials` of them on both sides: their means differ
    by 2 within / trials. On top of it the samples change: at worst a share `difference` of them from one end of the
    scale to the other and the rest not at all, which is difference (1 - difference). No sample gets worse where others
    get better: where some do, it is up to 1 - difference^2.
    """
    return 2 * within / trials + difference * (1 - difference)


def samples_for(difference: float, within: float, trials: int, power: float) -> int | None:
    """Return how many samples, on both sides, show a difference at the 95% level with this power.

    None means more than `MAX_SAMPLES`.

    It is the least n with (t(0.975) + t(power)) sqrt(spread / n) + `UNSEEN` / n at most the difference, Student's t
    with n - 1 degrees of freedom, where enough samples change: see `seen_by`.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), 2.4; for evaluations E. Miller,
    Adding Error Bars to Evals, arXiv:2411.00640 (2024), section 5.

    Raises:
        ValueError: the difference is not between 0 and 1, or the power not from 0.5 to below 1.
    """
    _check(difference, power)

    def enough(samples: int) -> bool:
        least = seen_by(samples, within, trials, power)
        return least is not None and least <= difference

    high = 2
    while not enough(high):
        high *= 2
        if high > MAX_SAMPLES:
            return None
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def seen_by(samples: int, within: float, trials: int, power: float, level: float = LEVEL) -> float | None:
    """Return the smallest difference that this many samples show with this power; None where they show none.

    It solves the formula of `samples_for` for the difference, which is on both sides of it. The formula is for many
    samples. Of few, at least `fewest_changes` have to change: the share of samples that change is at least the one
    with which this many do with this power. `level` is that of the interval in which the difference has to show.

    Samples flip from one end of the scale to the other, which is the worst case: of graded scores it is an upper limit.
    """
    if samples < fewest_changes(level):
        return None
    share = _quantiles(samples, power, level) ** 2 / samples
    unseen, noise = UNSEEN / samples, 2 * within / trials
    half = unseen + share / 2
    by_formula = (half + math.sqrt(half**2 - (1 + share) * (unseen**2 - share * noise))) / (1 + share)
    least = max(by_formula, _least_share(samples, fewest_changes(level), power))
    return least if least < 1 else None


def trials_for(difference: float, within: float, samples: int, power: float) -> int | None:
    """Return how many trials of this many samples show a difference with this power; None where no number does."""
    _check(difference, power)
    least = seen_by(samples, 0.0, 1, power)
    if least is None or least > difference:
        return None
    share = _quantiles(samples, power) ** 2 / samples
    left = (difference - UNSEEN / samples) ** 2 - share * difference * (1 - difference)
    return None if left <= 0 else max(1, math.ceil(2 * share * within / left - 1e-9))


def fewest_changes(level: float = LEVEL) -> int:
    """Return how many samples that all change from one end of the scale to the other show a difference.

    It is the least k with 2 (1/2)^k at most 1 - level, as in McNemar's exact test.
    """
    return 1 + math.ceil(-math.log2(1 - level) - 1e-9)


def _least_share(samples: int, changes: int, power: float) -> float:
    """Return the least chance to change with which at least some `changes` of the samples occur with this power."""
    low, high = changes / samples / 100, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if _at_least(samples, changes, middle) >= power else (middle, high)
    return high


def _at_least(samples: int, changes: int, chance: float) -> float:
    """Return the binomial probability of at least this number of changes."""
    odds, term, fewer = math.log(chance) - math.log1p(-chance), samples * math.log1p(-chance), 0.0
    for number in range(changes):
        fewer += math.exp(term)
        term += math.log((samples - number) / (number + 1)) + odds if number < samples else 0.0
    return 1 - fewer


def labels_for(half_width: float, wrong: float = WORST) -> int:
    """Return how many labels, drawn at random, give a rate without the judge's errors to within a half width.

    `wrong` is the share of verdicts with which people disagree, the largest variance of a label minus a verdict; the
    default is that of labels alone, for a judge that nobody knows.

    Source: A. Angelopoulos et al., Prediction-Powered Inference, Science 382 (2023): the part of the labels.
    """
    z = t_quantile((1 + LEVEL) / 2, 10**9)
    return max(1, math.ceil(z**2 * wrong / half_width**2))


def _quantiles(samples: int, power: float, level: float = LEVEL) -> float:
    return t_quantile((1 + level) / 2, samples - 1) + t_quantile(power, samples - 1)


def _check(difference: float, power: float) -> None:
    if not 0 < difference < 1:
        raise ValueError(f"difference must be between 0 and 1, got {difference}")
    if not 0.5 <= power < 1:
        raise ValueError(f"power must be at least 0.5 and below 1, got {power}")
