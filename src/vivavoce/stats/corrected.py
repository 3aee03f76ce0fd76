"""Rates of passing with the errors of the judge taken out, from labels of people.

Labels drawn at random from the same conversations correct by prediction-powered estimation. Labels from elsewhere say
how often the judge is right about good and about bad conversations, and correct by the formula of Rogan and Gladen,
which holds though the share of good ones differs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.intervals import effective_size, score_limits
from vivavoce.stats.sampled import PopulationMean

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Method = Literal["prediction_powered", "rogan_gladen"]

_UNSEEN = 0.5
"""Labels added to each of the four pairs of verdicts for the slope, so that a pair that few show is not impossible."""

_NORMAL = NormalDist().inv_cdf(0.975)
_ALL = 1e12
"""Verdicts beyond which their number leaves nothing to chance."""


class NotIdentifiable(ValueError):
    """Labels that cannot correct a rate: the message says why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A rate of passing without the errors of the judge, its interval, and `raw`, the judge's own rate.

    `labels` counts the labels of people behind it, `judged` the verdicts of the judge.
    """

    value: float
    low: float
    high: float
    raw: float
    method: Method
    labels: int
    judged: int


@dataclass(frozen=True, slots=True)
class Table:
    """How often the judge passes what people pass (`tp`) and fail (`fp`), and fails what they pass (`fn`) and fail.

    They are as many independent labels as the labels are worth, so not always whole: see `table_of`.
    """

    tp: float
    fn: float
    tn: float
    fp: float

    @property
    def sensitivity(self) -> float | None:
        """The share of the good that the judge passes; None without a good one."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def specificity(self) -> float | None:
        """The share of the bad that the judge fails; None without a bad one."""
        return self.tn / (self.tn + self.fp) if self.tn + self.fp else None


def table_of(
    truth: Sequence[float],
    judged: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
) -> Table:
    """Return the table of labels 0 or 1 next to verdicts 0 or 1; `clusters` names the sample of each.

    `weights` are 1 / the probability with which each label was drawn, where these differ. Labels of one sample are not
    independent, and those of small weight tell little: a class counts as many labels as independent ones of equal
    weight would tell as much of its share (see `effective_size`).

    Raises:
        ValueError: the sequences differ in length, a value is neither 0 nor 1, or a weight is not above 0.
    """
    good, passed, groups = _binary(truth), _binary(judged), _groups(clusters)
    w = _weights(weights, len(good))
    _same_length(good, passed, groups, w)
    tp, fn = _effective(passed, good == 1, groups, w)
    fp, tn = _effective(passed, good == 0, groups, w)
    return Table(tp=tp, fn=fn, tn=tn, fp=fp)


def prediction_powered(
    truth: Sequence[float],
    judged: Sequence[float],
    clusters: Sequence[Hashable],
    others: Sequence[float],
    other_clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    stands_for: Sequence[float] | None = None,
) -> Corrected:
    """Return the rate of passing from a random part that people labelled and the judge's verdicts on everything.

    `truth` and `judged` are 0 or 1 for each labelled unit, `others` for each unit without a label; clusters name their
    samples. `weights` are 1 / the probability with which each label was drawn, where these differ. Where the units were
    drawn themselves, `stands_for` says for how many of a population each stands, labelled ones first, and weights are
    1 / the probability of both: the rate is then that of the population. Its strata and its end, which make the
    variance smaller, are not counted on.

    With y and f for labels and verdicts the estimate is mean(f over all) b + weighted mean(y - b f over the labelled),
    where b is the slope of y on f: PPI++, where the power b is tuned. The variance is that of its influence function,
    summed by sample. The interval is that of every mean (see `score_limits`), where the labels are the samples. Where
    that of b = 0, the labels alone, is narrower, the estimate is theirs: so where every unit has a label, the interval
    is that of the mean of the labels.

    Source: A. N. Angelopoulos, J. C. Duchi and T. Zrnic, PPI++: Efficient Prediction-Powered Inference,
    arXiv:2311.01453 (2023); for the interval see `effective_size`.

    Raises:
        NotIdentifiable: there are labels of fewer than two samples.
        ValueError: sequences differ in length, a value is neither 0 nor 1, or a weight is not above 0.
    """
    y, f, rest = _binary(truth), _binary(judged), _binary(others)
    w = _weights(weights, len(y))
    every = np.concatenate([f, rest])
    groups, all_w = _groups([*clusters, *other_clusters]), _weights(stands_for, len(every))
    _same_length(y, f, w)
    _same_length(every, groups, all_w)
    labelled = len(np.unique(groups[: len(y)]))
    if labelled < 2:
        raise NotIdentifiable(f"at least two labelled samples are needed, got {labelled or 'none'}")
    raw = float(np.average(every, weights=all_w))
    shares = np.bincount(groups[: len(y)], weights=w) / w.sum()
    squares, heaviest = float((shares**2).sum()), float(shares.max())

    def estimate(slope: float) -> Corrected:
        residual = y - slope * f
        mean = float(np.average(residual, weights=w))
        value = min(1.0, max(0.0, slope * raw + mean))
        influence = slope * all_w * (every - raw) / all_w.sum()
        influence[: len(y)] += w * (residual - mean) / w.sum()
        variance = float((np.bincount(groups, weights=influence) ** 2).sum())
        low, high = score_limits(value, variance, squares, heaviest, level)
        return Corrected(value, low, high, raw, "prediction_powered", len(y), len(every))

    return min((estimate(slope) for slope in (_slope(y, f, w), 0.0)), key=lambda result: result.high - result.low)


def rogan_gladen(
    passed: Sequence[float],
    clusters: Sequence[Hashable],
    table: Table,
    level: float = 0.95,
    labels: int | None = None,
    population: PopulationMean | None = None,
) -> Corrected:
    """Return the rate of passing from the judge's verdicts and how often it is right about labelled conversations.

    `passed` is 0 or 1 for each unit, `clusters` names its sample; `table` is from labels of other units, in which
    good ones may be more or less frequent. `labels` is how many there are where the table counts less. Where the
    units were drawn, `population` is the judge's rate over all that they were drawn from.

    With p the judge's rate, the rate is (p + specificity - 1) / (sensitivity + specificity - 1), cut to 0 … 1. The
    interval holds every rate that these three do not contradict, by Fieller's argument: no division by a small number,
    and a judge that is near chance gets a wide interval and none that is wrong. Shares are moved towards one half by
    one pass and one failure, that of the judge by half of z² each.

    Source: W. J. Rogan and B. Gladen, Estimating Prevalence from the Results of a Screening Test, American Journal of
    Epidemiology 107 (1978); E. C. Fieller, Some Problems in Interval Estimation, JRSS B 16 (1954); the added counts are
    those of Z. Lang and J. Reiczigel, Confidence Limits for Prevalence of Disease Adjusted for Estimated Sensitivity
    and Specificity, Preventive Veterinary Medicine 113 (2014).

    Raises:
        NotIdentifiable: a class has no label, the judge is not better than chance, or any rate from 0 to 1 is possible.
        ValueError: sequences differ in length, or a value is neither 0 nor 1.
    """
    verdicts, groups = _binary(passed), _groups(clusters)
    _same_length(verdicts, groups)
    if not len(verdicts):
        raise NotIdentifiable("the judge gave no verdict")
    good, bad = table.tp + table.fn, table.tn + table.fp
    if not good or not bad:
        raise NotIdentifiable(f"no labelled conversation is {'bad' if good else 'good'}: both kinds are needed")
    sensitivity, specificity = table.tp / good, table.tn / bad
    if sensitivity + specificity <= 1:
        raise NotIdentifiable("the judge passes bad conversations as often as good ones, or more often")
    raw = float(verdicts.mean()) if population is None else population.mean
    value = (raw + specificity - 1) / (sensitivity + specificity - 1)
    z = NormalDist().inv_cdf((1 + level) / 2)
    all_passed, all_failed = _effective(
        verdicts, np.ones(len(verdicts), dtype=np.bool_), groups, np.ones(len(verdicts))
    )
    if population is not None:
        worth = min(population.effective, _ALL)
        all_passed, all_failed = worth * raw, worth * (1 - raw)
    shares = (
        _smooth_share(all_passed, all_failed, z * z / 2),
        _smooth_share(table.tp, table.fn, 1.0),
        _smooth_share(table.tn, table.fp, 1.0),
    )
    low, high = _fieller(*shares, z)
    if low <= 0 and high >= 1:
        raise NotIdentifiable("the labels leave every rate from 0 to 1 possible: the judge is too close to chance")
    value = min(1.0, max(0.0, value))
    low, high = min(value, max(0.0, low)), max(value, min(1.0, high))
    count = round(good + bad) if labels is None else labels
    return Corrected(value, low, high, raw, "rogan_gladen", count, len(verdicts))


def _smooth_share(hits: float, misses: float, added: float) -> tuple[float, float]:
    """Return a share with `added` on both sides, and its variance."""
    n = hits + misses + 2 * added
    share = (hits + added) / n
    return share, share * (1 - share) / n


def _fieller(
    judged: tuple[float, float], sensitivity: tuple[float, float], specificity: tuple[float, float], z: float
) -> tuple[float, float]:
    """Return the ends of the rates r with |p + sp - 1 - r (se + sp - 1)| <= z times its standard error."""
    (p, p_var), (se, se_var), (sp, sp_var) = judged, sensitivity, specificity
    above, youden = p + sp - 1, se + sp - 1
    a = youden**2 - z * z * (se_var + sp_var)
    b = -2 * above * youden + 2 * z * z * sp_var
    c = above**2 - z * z * (p_var + sp_var)
    inner = b * b - 4 * a * c
    if a <= 0:
        return -math.inf, math.inf
    half = math.sqrt(max(0.0, inner))
    return (-b - half) / (2 * a), (-b + half) / (2 * a)


def _slope(y: Floats, f: Floats, w: Floats) -> float:
    """Return the weighted slope of labels on verdicts, each of the four pairs with a little more; 0 … 1."""
    unit = _UNSEEN * float(w.mean())
    rates = [
        (float(w[(f == end) & (y == 1)].sum()) + unit) / (float(w[f == end].sum()) + 2 * unit) for end in (0.0, 1.0)
    ]
    return min(1.0, max(0.0, rates[1] - rates[0]))


def _effective(passed: Floats, those: NDArray[np.bool_], groups: Places, w: Floats) -> tuple[float, float]:
    """Return how many independent verdicts of `those` passed and did not, by the design effect of their samples."""
    if not those.any():
        return 0.0, 0.0
    mine, weight = passed[those], w[those] / w[those].sum()
    samples = np.unique(groups[those], return_inverse=True)[1]
    share, count = _share(weight, mine), int(samples.max()) + 1
    squares = float((np.bincount(samples, weights=weight) ** 2).sum())
    if count == len(mine) and weight.min() == weight.max():
        return count * share, count * (1 - share)
    variance = float((np.bincount(samples, weights=weight * (mine - share)) ** 2).sum())
    n = min(effective_size(share, variance, squares, squares, _NORMAL), float(len(mine)))
    return n * share, n * (1 - share)


def _share(weight: Floats, passed: Floats) -> float:
    """Return the weighted share that passed, exactly 0 or 1 where none or all did."""
    hits, misses = float(weight[passed == 1].sum()), float(weight[passed == 0].sum())
    return hits / (hits + misses)


def _weights(weights: Sequence[float] | None, count: int) -> Floats:
    array = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(array) and not (np.isfinite(array).all() and array.min() > 0):
        raise ValueError("weights must be finite and above 0")
    return array


def _binary(values: Sequence[float]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not ((array == 0) | (array == 1)).all():
        raise ValueError("verdicts and labels must be 0 or 1")
    return array


def _groups(clusters: Sequence[Hashable]) -> Places:
    seen: dict[Hashable, int] = {}
    return np.fromiter(
        (seen.setdefault(cluster, len(seen)) for cluster in clusters), dtype=np.intp, count=len(clusters)
    )


def _same_length(*arrays: Floats | Places) -> None:
    if len({len(array) for array in arrays}) > 1:
        raise ValueError(
            f"the sequences must have the same length, got {', '.join(str(len(array)) for array in arrays)}"
        )
