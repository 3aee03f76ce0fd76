"""Paired comparison of two runs: the same scenarios, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vivavoce.stats.intervals import Estimate, mean_interval
from vivavoce.stats.student import t_quantile

POWER = 0.8
"""How many of comparisons like this one a detectable difference would show in."""

_TIE = 1e-9
"""Means of trials that differ by less than this are the same number, summed in another order."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much higher the second side scores, over the `n` scenarios that both sides have.

    `wins`, `losses` and `ties` count scenarios from the second side's view. `only_a` and `only_b` name the scenarios
    without a partner. `low` and `high` are None where there is a single pair, and so is `detectable`, the smallest true
    difference that an interval like this one would exclude zero for in `POWER` of all comparisons.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    wins: int
    losses: int
    ties: int
    p_value: float
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
    scenario without a score counts as absent. The interval is that of `mean_interval` over the differences.

    Source: E. Miller, Adding Error Bars to Evals, arXiv:2411.00640 (2024).
    """
    means_a, means_b = _means(a), _means(b)
    differences = [means_b[key] - mean for key, mean in means_a.items() if key in means_b]
    found = difference_of(differences, level, bounds)
    if found is None:
        return None
    only_a, only_b = means_a.keys() - means_b.keys(), means_b.keys() - means_a.keys()
    return replace(found, only_a=tuple(sorted(only_a)), only_b=tuple(sorted(only_b)))


def difference_of(
    differences: Sequence[float], level: float = 0.95, bounds: tuple[float, float] = (0.0, 1.0)
) -> PairedDifference | None:
    """Return what `paired_difference` does, from the difference b - a of each scenario that both sides have.

    `bounds` are those of the scores; no scenario is named as being without a partner.
    """
    reach = bounds[1] - bounds[0]
    estimate = mean_interval(differences, level=level, bounds=(-reach, reach))
    if estimate is None:
        return None
    wins = len([one for one in differences if one > _TIE])
    losses = len([one for one in differences if one < -_TIE])
    return PairedDifference(
        mean=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        wins=wins,
        losses=losses,
        ties=estimate.n - wins - losses,
        p_value=sign_test(wins, losses),
        detectable=_detectable(estimate, level),
    )


def _detectable(estimate: Estimate, level: float) -> float | None:
    """Return half the width of an interval, longer by the quantile of the power beside that of its level.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), 2.4; for evaluations E. Miller,
    Adding Error Bars to Evals, arXiv:2411.00640 (2024), section 5.
    """
    if estimate.low is None or estimate.high is None:
        return None
    two_sided, power = (t_quantile(one, estimate.clusters - 1) for one in ((1 + level) / 2, POWER))
    return (estimate.high - estimate.low) / 2 * (1 + power / two_sided)


def sign_test(wins: int, losses: int) -> float:
    """Return the exact two-sided p value that wins and losses are equally likely; ties say nothing.

    For scores of 0 and 1 this is McNemar's exact test.

    Source: Q. McNemar, Note on the Sampling Error of the Difference Between Correlated Proportions (1947).
    """
    from scipy.special import bdtr

    tail = float(bdtr(min(wins, losses), wins + losses, 0.5))
    return min(1.0, 2 * tail)


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {key: math.fsum(trials) / len(trials) for key, trials in scores.items() if trials}
