"""Where a cheap judge may decide alone: two thresholds, chosen on labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.corrected import table_of
from vivavoce.stats.intervals import wilson
from vivavoce.stats.raters import kappa_interval

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MAX_THRESHOLDS = 400
"""Thresholds that are tried at most; of more values that the cheap judge gave, as many quantiles."""
_DIGITS = 6
_ONE_SIDED = 1.6448536269514722
"""The standard normal quantile of 95%."""
_ALWAYS = 1e-12


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels next to what a cheap and an expensive judge say of the same conversations, and what each costs.

    The cheap one fails a conversation where `low` is below the one threshold, and passes it where `high` is at least
    the other; infinite where it may not. `samples` names the sample of each, and `weights` are 1 / the probability
    with which each label was drawn.
    """

    good: Bools
    low: Floats
    high: Floats
    then: Bools
    first_cost: Floats
    then_cost: Floats
    samples: Sequence[Hashable]
    weights: Floats

    def part(self, those: Bools) -> Labelled:
        """Return some of them."""
        return Labelled(
            good=self.good[those],
            low=self.low[those],
            high=self.high[those],
            then=self.then[those],
            first_cost=self.first_cost[those],
            then_cost=self.then_cost[those],
            samples=[self.samples[place] for place in np.flatnonzero(those).tolist()],
            weights=self.weights[those],
        )


@dataclass(frozen=True, slots=True)
class Applied:
    """What comes of two thresholds: which pass, which go on to the expensive judge, and the cost as a share of its."""

    passed: Bools
    uncertain: Bools
    cost: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below `fails_below` the cheap judge fails, from `passes_from` on it passes; None where it never decides that."""

    fails_below: float | None
    passes_from: float | None

    def of(self, cases: Labelled) -> Applied:
        """Return what comes of them."""
        never = np.zeros(len(cases.low), dtype=np.bool_)
        fails = never if self.fails_below is None else cases.low < self.fails_below
        passes = never if self.passes_from is None else cases.high >= self.passes_from
        uncertain = ~(fails | passes)
        spent = np.dot(cases.weights, cases.first_cost + uncertain * cases.then_cost)
        return Applied(
            passes | (uncertain & cases.then), uncertain, float(spent / np.dot(cases.weights, cases.then_cost))
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The cheapest thresholds that agree with the labels as far as the expensive judge does, and their cost."""

    thresholds: Thresholds
    cost: float


def choose_thresholds(cases: Labelled, most: float = 1.0) -> Choice | None:
    """Return the cheapest thresholds under which the whole agrees with the labels as far as the expensive judge does.

    Of every pair of thresholds, those stand for choice that cost at most the share `most` of the expensive judge alone,
    whose loss of accuracy against it, with a margin, is below half the width of its interval, and whose kappa is not
    below its interval. For a pair that was fixed before, loss and margin are a 95% bound. For the cheapest of many
    pairs they are not: on simulated labels the true loss was below them in 79% to 100% of cases. None where there is
    no such pair.

    What a threshold changes is a sum over the conversations that it decides, and no conversation is decided by both.
    So all pairs are the sums of each threshold added up: n log n for the order, and one addition for each pair. Of
    pairs that do the same, the one is taken that is farthest apart.

    Source of the interval of the loss: A. Agresti and Y. Min, Simple improved confidence intervals for comparing
    matched proportions (2005), for as many independent labels as they are worth.
    """
    w = cases.weights / np.sum(cases.weights)
    values = np.concatenate([cases.low[np.isfinite(cases.low)], cases.high[np.isfinite(cases.high)]])
    tried = between(values)
    if not len(tried):
        return None
    fails = _Sums.where(cases, w, cases.low, tried, passes=False)
    passes = _Sums.where(cases, w, -cases.high, -tried[::-1], passes=True).reverse()
    pairs = fails.beside(passes)
    right = cases.then == cases.good
    accuracy, margin = _accuracy(cases, right)
    n = worth(cases)
    loss = _most_lost(pairs.change, pairs.discordant, n)
    cost = (np.dot(w, cases.first_cost + cases.then_cost) - pairs.saved) / np.dot(w, cases.then_cost)
    agrees = _kappas(accuracy + pairs.change, float(np.dot(w, cases.then)) + pairs.more, float(np.dot(w, cases.good)))
    interval = kappa_interval(cases.then, cases.good, cases.samples, cases.weights.tolist())
    least = -1.0 if interval is None else interval[0]
    allowed = (loss < margin) & (agrees >= least) & (cost <= most + _ALWAYS) & _in_order(len(tried))
    if not allowed.any():
        return None
    cheapest = np.where(allowed, cost, np.inf)
    best = np.where(cheapest <= cheapest.min() + _ALWAYS, pairs.change, -np.inf)
    places = np.argwhere(best >= best.max() - _ALWAYS)
    row, column = places[np.argmax(places[:, 1] - places[:, 0])].tolist()
    low = None if row == 0 else float(tried[row - 1])
    high = None if column == len(tried) else float(tried[column])
    if low is not None and low == high:
        below = float(values[values < low].max())
        low = float(between(np.array([below, np.nextafter(low, below)]))[0])
    return Choice(Thresholds(low, high), float(cost[row, column]))


def between(values: Floats) -> Floats:
    """Return thresholds that separate different values, in order, each with as few digits as do it."""
    unique: Floats = np.unique(values)
    if len(unique) > MAX_THRESHOLDS + 1:
        unique = np.unique(np.quantile(unique, np.linspace(0, 1, MAX_THRESHOLDS + 1), method="nearest"))
    low: Floats = unique[:-1]
    high: Floats = unique[1:]
    thresholds = high.copy()
    open_ = np.ones(len(thresholds), dtype=np.bool_)
    for digits in range(1, _DIGITS + 1):
        middle: Floats = np.round((low + high) / 2, digits)
        below: Floats = np.round(np.floor(high * 10.0**digits) / 10.0**digits, digits)
        for short in (middle, below):
            fits: Bools = open_ & (short > low) & (short <= high)
            thresholds[fits], open_[fits] = short[fits], False
    return np.unique(thresholds)


def worth(cases: Labelled) -> float:
    """Return as how many independent labels of equal weight they count, were all of one sample the same."""
    _, groups = np.unique(np.asarray([hash(sample) for sample in cases.samples]), return_inverse=True)
    sums = np.bincount(groups, weights=cases.weights)
    return float(np.sum(sums) ** 2 / np.sum(sums**2))


@dataclass(frozen=True, slots=True)
class _Sums:
    """What changes where the cheap judge decides instead of the expensive one, as parts of all labels.

    `change` is the change of the accuracy, `discordant` the part where only one judge is right, `more` the change of
    the part that passes, `saved` the cost of the expensive judge.
    """

    change: Floats
    discordant: Floats
    more: Floats
    saved: Floats

    @staticmethod
    def where(cases: Labelled, w: Floats, key: Floats, tried: Floats, *, passes: bool) -> _Sums:
        """Return the sums for each threshold, first for none: over all whose key is below it, or for passes equal."""
        order = np.argsort(key, kind="stable")
        ends = np.searchsorted(key[order], tried, side="right" if passes else "left")
        ends = np.concatenate([[0], ends])
        right = (cases.good if passes else ~cases.good).astype(np.float64)
        change = right - (cases.then == cases.good)
        more = float(passes) - cases.then.astype(np.float64)

        def total(each: Floats) -> Floats:
            return np.concatenate([[0.0], np.cumsum((w * each)[order])])[ends]

        return _Sums(total(change), total(np.abs(change)), total(more), total(cases.then_cost))

    def reverse(self) -> _Sums:
        """Return them in the other order."""
        return _Sums(self.change[::-1], self.discordant[::-1], self.more[::-1], self.saved[::-1])

    def beside(self, other: _Sums) -> _Sums:
        """Return the sums of each with each: a row for each of these, a column for each of the others."""
        return _Sums(
            np.add.outer(self.change, other.change),
            np.add.outer(self.discordant, other.discordant),
            np.add.outer(self.more, other.more),
            np.add.outer(self.saved, other.saved),
        )


def _in_order(tried: int) -> Bools:
    """Return which pairs of thresholds are in order.

    Row 0 means no lower threshold, the last column no upper one; both together decide nothing. Row r is the threshold
    r - 1, column c the threshold c. Of two equal ones the lower is then moved down, to where no value is between them:
    the cheap judge decides all that it has a value for.
    """
    rows, columns = np.arange(tried + 1)[:, None] - 1, np.arange(tried + 1)[None, :]
    order = rows <= columns
    order[0, tried] = False
    return order


def _accuracy(cases: Labelled, right: Bools) -> tuple[float, float]:
    """Return the accuracy of the expensive judge, and half the width of its interval."""
    weights = cases.weights.tolist()
    table = table_of([1.0] * len(right), right.astype(np.float64).tolist(), cases.samples, weights)
    low, high = wilson(table.tp, table.tp + table.fn)
    return float(np.average(right, weights=cases.weights)), (high - low) / 2


def _most_lost(change: Floats, discordant: Floats, n: float) -> Floats:
    """Return the upper 95% bound of the accuracy that a pair of thresholds, fixed before, loses on n labels."""
    lost, both = -change * n, discordant * n + 1
    m = n + 2
    return lost / m + _ONE_SIDED * np.sqrt(np.maximum(both - lost**2 / m, 0)) / m


def _kappas(accuracy: Floats, passed: Floats, good: float) -> Floats:
    by_chance = passed * good + (1 - passed) * (1 - good)
    return np.where(1 - by_chance > _ALWAYS, (accuracy - by_chance) / np.maximum(1 - by_chance, _ALWAYS), -1.0)
