"""Rates of several groups, each against the rest: differences with intervals, and which of them chance explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.stats.intervals import Estimate, ShareSums, share_interval

RATE = 0.05
"""The part of the groups that are said to differ which may be wrong, on average: the false-discovery rate."""

_FARTHEST = 6.5
"""The largest normal quantile that is looked at: p values below 1e-10 are all that one."""
_CLOSE = 1e-9
"""How near the end of an interval is to zero where the search for a p value ends."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """Sums over the samples on both sides of a group, p passed of n tries inside and P of N outside.

    They are those of p P, p N, n P and n N; all are 0 where no sample is on both sides.
    """

    passed_passed: int = 0
    passed_tries: int = 0
    tries_passed: int = 0
    tries_tries: int = 0


@dataclass(frozen=True, slots=True)
class GroupSums:
    """What was counted `inside` a group and `outside` of it."""

    inside: ShareSums
    outside: ShareSums
    crossed: Crossed = Crossed()


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """The rate inside a group less that outside, with its interval and p value.

    `q_value` is the least false-discovery rate at which the group is among those that differ; it `differs` from the
    rest beyond chance where that is at most `RATE`.
    """

    difference: float
    low: float
    high: float
    p_value: float
    q_value: float
    differs: bool


def group_differences(groups: Sequence[GroupSums], level: float = 0.95) -> list[GroupDifference | None]:
    """Return how each group differs from the rest, None where one side has less than two samples.

    The interval combines those of the two rates (see `share_interval`) by squaring and adding their distances from the
    rates, less what samples on both sides have in common. The p value is 1 - the level at which the interval ends at
    zero, so that both say the same. The p values of all groups are adjusted together: see `adjusted`.

    Source: G. Y. Zou and A. Donner, Construction of Confidence Limits about Effect Measures, Statistics in Medicine 27
    (2008); for samples on both sides R. G. Newcombe, Improved Confidence Intervals for the Difference between Binomial
    Proportions Based on Paired Data, Statistics in Medicine 17 (1998), method 10.
    """
    found = [(one, ends) if (ends := _ends(one, level)) is not None else None for one in groups]
    tested = [(*one, _p_value(one[0])) for one in found if one is not None]
    q_values = iter(adjusted([p for *_, p in tested]))
    told = iter(GroupDifference(*ends, p, q, q <= RATE) for (_, ends, p), q in zip(tested, q_values, strict=True))
    return [None if one is None else next(told) for one in found]


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return p values adjusted so that those up to a rate are wrong in at most that part of the cases, on average.

    Source: Y. Benjamini and Y. Hochberg, Controlling the False Discovery Rate, JRSS B 57 (1995); it holds for tests
    that depend on each other positively.
    """
    number = len(p_values)
    order = sorted(range(number), key=lambda place: p_values[place], reverse=True)
    found, least = [1.0] * number, 1.0
    for rank, place in zip(range(number, 0, -1), order, strict=True):
        least = min(least, p_values[place] * number / rank)
        found[place] = least
    return found


def _ends(sums: GroupSums, level: float) -> tuple[float, float, float] | None:
    """Return a difference and its interval at a level."""
    one, other = share_interval(sums.inside, level), share_interval(sums.outside, level)
    if one is None or other is None or None in (one.low, other.low):
        return None
    common = _correlation(sums, one, other)
    difference = one.mean - other.mean
    below = _combined(_down(one), _up(other), common)
    above = _combined(_up(one), _down(other), common)
    return difference, max(-1.0, difference - below), min(1.0, difference + above)


def _down(rate: Estimate) -> float:
    return 0.0 if rate.low is None else rate.mean - rate.low


def _up(rate: Estimate) -> float:
    return 0.0 if rate.high is None else rate.high - rate.mean


def _combined(one: float, other: float, common: float) -> float:
    return math.sqrt(max(0.0, one * one + other * other - 2 * common * one * other))


def _correlation(sums: GroupSums, one: Estimate, other: Estimate) -> float:
    """Return how far the two rates move together, from the residuals of the samples on both sides.

    Half a sample less is taken to go along, as Newcombe corrects it for continuity.
    """
    c = sums.crossed
    if not c.tries_tries:
        return 0.0
    shared = (
        c.passed_passed
        - other.mean * c.passed_tries
        - one.mean * c.tries_passed
        + one.mean * other.mean * c.tries_tries
    )
    if shared > 0:
        shared = max(0.0, shared - c.tries_tries / min(sums.inside.samples, sums.outside.samples) / 2)
    spread = _squares(sums.inside, one.mean) * _squares(sums.outside, other.mean)
    return max(-1.0, min(1.0, shared / math.sqrt(spread))) if spread > 0 else 0.0


def _squares(sums: ShareSums, mean: float) -> float:
    return sums.passed_squared - 2 * mean * sums.passed_by_tries + mean * mean * sums.tries_squared


def _p_value(sums: GroupSums) -> float:
    """Return 1 - the highest level at which zero is outside the interval of the difference.

    It is searched by the false position over the normal quantile of the level, of which the ends are nearly linear.

    Source: M. Dowell and P. Jarratt, A Modified Regula Falsi Method, BIT 11 (1971), the Illinois rule.
    """
    low, high = 0.0, _FARTHEST
    at_low, at_high = _beyond(sums, low), _beyond(sums, high)
    if at_low <= 0:
        return 1.0
    if at_high >= 0:
        return _level(high)[1]
    same, guess = 0, low
    while high - low > _CLOSE:
        guess = (low * at_high - high * at_low) / (at_high - at_low)
        found = _beyond(sums, guess)
        if abs(found) < _CLOSE:
            break
        if found > 0:
            low, at_low = guess, found
            at_high, same = (at_high / 2, 1) if same == 1 else (at_high, 1)
        else:
            high, at_high = guess, found
            at_low, same = (at_low / 2, -1) if same == -1 else (at_low, -1)
    return _level(guess)[1]


def _beyond(sums: GroupSums, z: float) -> float:
    """Return how far from zero the nearer end of the interval is, below 0 where zero is inside."""
    ends = _ends(sums, _level(z)[0])
    if ends is None:
        return -1.0
    difference, low, high = ends
    return low if difference > 0 else -high if difference < 0 else 0.0


def _level(z: float) -> tuple[float, float]:
    """Return the level that a normal quantile stands for, and what is left to 1."""
    left = math.erfc(z / math.sqrt(2))
    return 1 - left, left
