"""Paired comparison of two runs: the same scenarios, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vivavoce.plugins import lazy
from vivavoce.stats.planning import seen_by

POWER = 0.8
"""How many of comparisons like this one a detectable difference would show in."""

_TIE = 1e-9
"""Means of trials that differ by less than this are the same number, summed in another order."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much higher the second side scores, over the `n` scenarios that both sides have.

    `p_value` is that of the mean: it is at most 0.05 where the 95% interval excludes zero. `worse_p_value` asks only
    whether the second side is lower: it is at most 0.05 where the one-sided 95% upper limit `worse_bound` is below
    zero. `wins`, `losses` and `ties` count scenarios from the second side's view, and `sign_p_value` asks whether wins
    and losses are equally likely, which is another question for graded scores. `only_a` and `only_b` name the scenarios
    without a partner. `low`, `high`, and the p values are None where there is a single pair. At least `POWER` of all
    comparisons like this one would show a true difference of `detectable`, which is None where even the largest would
    not show. For graded scores it is an upper limit: see `seen_by`.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    wins: int
    losses: int
    ties: int
    p_value: float | None
    sign_p_value: float
    worse_p_value: float | None = None
    worse_bound: float | None = None
    detectable: float | None = None
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def paired_difference(
    a: Mapping[str, Sequence[float]],
    b: Mapping[str, Sequence[float]],
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> PairedDifference | None:
    """Return the mean difference b - a over scenarios that both sides have, None where they share none.

    Each side maps a scenario to the scores of its trials, each within `bounds`; trials are averaged first, and a
    scenario without a score counts as absent.

    The interval and the p values are those of `bounded_mean`: scenarios are independent draws of what you care about,
    and scores are within the bounds. The p value of passes and failures is that of McNemar's exact test. Lower scores
    of b never raise an end.

    Source: for pairs E. Miller, Adding Error Bars to Evals, arXiv:2411.00640 (2024); for the interval see
    `bounded_mean`; for `detectable` see `seen_by`, of a variance with one more difference as large as the largest.
    """
    means_a, means_b = _means(a), _means(b)
    differences = [means_b[key] - mean for key, mean in means_a.items() if key in means_b]
    difference = difference_of(differences, level, bounds)
    if difference is None:
        return None
    only_a, only_b = means_a.keys() - means_b.keys(), means_b.keys() - means_a.keys()
    return replace(difference, only_a=tuple(sorted(only_a)), only_b=tuple(sorted(only_b)))


def difference_of(
    differences: Sequence[float], level: float = 0.95, bounds: tuple[float, float] = (0.0, 1.0)
) -> PairedDifference | None:
    """Return what `paired_difference` does, from the difference b - a of each scenario that both sides have.

    `bounds` are those of the scores; no scenario is named as being without a partner.
    """
    n = len(differences)
    if not n:
        return None
    scale = bounds[1] - bounds[0]
    mean = math.fsum(differences) / n
    variance = math.fsum((each - mean) ** 2 for each in differences) / max(1, n - 1)
    wins = len([each for each in differences if each > _TIE])
    losses = len([each for each in differences if each < -_TIE])
    largest = max(map(abs, differences)) if wins or losses else scale
    low = high = p_value = worse_p_value = worse_bound = None
    if n > 1:
        even = [0.0 if abs(each) <= _TIE else each for each in differences]
        limits = lazy("vivavoce.stats.bounded_mean:bounded_mean")(even, (-scale, scale), level)
        low, high, p_value = min(limits.low, mean), max(limits.high, mean), limits.p_value
        worse_p_value, worse_bound = limits.below_p_value, max(limits.upper_bound, mean)
    variance += largest**2 / max(1, n - 1)  # of few pairs, none or few may have shown how much pairs can differ
    seen = seen_by(n, variance / scale**2 / 2, 1, POWER, level)
    return PairedDifference(
        mean=mean,
        low=low,
        high=high,
        n=n,
        wins=wins,
        losses=losses,
        ties=n - wins - losses,
        p_value=p_value,
        sign_p_value=sign_test(wins, losses),
        worse_p_value=worse_p_value,
        worse_bound=worse_bound,
        detectable=None if seen is None else seen * scale,
    )


def sign_test(wins: int, losses: int) -> float:
    """Return the exact two-sided p value that wins and losses are equally likely; ties say nothing.

    For scores of 0 and 1 this is McNemar's exact test.

    Source: Q. McNemar, Note on the Sampling Error of the Difference Between Correlated Proportions (1947).
    """
    return min(1.0, 2 * worse_sign_test(min(wins, losses), max(wins, losses)))


def worse_sign_test(wins: int, losses: int) -> float:
    """Return the exact one-sided p value for losses being more likely than wins; ties are ignored.

    It is the chance of at most as many wins, if each of the wins and losses is a win with the chance 1/2.
    """
    number, fewer = wins + losses, wins
    chances = math.lgamma(number + 1) - math.lgamma(fewer + 1) - math.lgamma(number - fewer + 1)
    term = tail = math.exp(chances - number * math.log(2))
    while fewer > 0 and (term > 1e-17 * tail or 2 * fewer > number):
        term *= fewer / (number - fewer + 1)
        tail += term
        fewer -= 1
    return min(1.0, tail)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted so that the chance that any of those up to a rate is a false alarm is at most the rate.

    The lowest of m is multiplied by m, the next by m - 1, and so on; none gets a lower one than a p value below it.

    Source: S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6
    (1979).
    """
    adjusted, highest = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - rank)))
        adjusted[place] = highest
    return adjusted


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {key: math.fsum(trials) / len(trials) for key, trials in scores.items() if trials}
