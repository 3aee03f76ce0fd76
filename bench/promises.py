"""How often the statistical promises are kept: a table of promises, what was asked, and what simulations measured.

`python bench/promises.py` makes 2,000 simulated sets of data for each row; `python bench/promises.py 300` makes 300.
A row ends with "kept" where the measured rate is within the bounds. Tables of exact rates follow: those of Wilson's
interval at the worst rate there is, those of graded scores with two values, and those of a comparison of passes and
failures, and of rare gains. Every other interval is in `intervals.py`, `sampled.py`, `stopping.py`, `forks.py`,
`cascade.py` and `realism.py`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

from vivavoce.records.run import Verdict
from vivavoce.report.comparison.comparison import Comparison, GraderComparison, Side, TargetComparison
from vivavoce.report.comparison.pairing import loss_of
from vivavoce.report.comparison.regressions import Tolerance, add_ruling
from vivavoce.stats.agreement import agreement
from vivavoce.stats.bounded_mean import bounded_mean
from vivavoce.stats.groups import RATE, Cell, Sample, adjust_p_values, group_differences
from vivavoce.stats.intervals import mean_interval, share_interval, wilson
from vivavoce.stats.paired import POWER, PairedDifference, difference_of
from vivavoce.stats.planning import samples_for, trial_variance
from vivavoce.stats.two_means import mean_differences

SETS = 2000
Random = np.random.Generator
Floats = NDArray[np.float64]
Rate = float | tuple[float, float]
"""The rate of passing of every sample, or the parameters of the beta distribution that each is drawn from."""

SLACK = 0.01
"""How far above its nominal rate a false alarm may be measured."""
FALSE_PASS = 0.03
"""How often a gate on the lower end may pass a bot that is exactly at its value."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised of which data, how to measure the rate in a number of sets, and its bounds."""

    what: str
    data: str
    measure: Callable[[Random, int], float]
    low: float
    high: float

    def measured(self, sets: int) -> float:
        """Return the rate in simulated sets, always the same ones."""
        return self.measure(np.random.default_rng(len(self.data) * 7919 + len(self.what)), sets)


def _limits(passed: NDArray[np.int64], tries: int) -> tuple[float, float]:
    estimate = share_interval(Counter((int(each), tries) for each in passed))
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def covers(samples: int, tries: int, rate: Rate, low: float = 0.93) -> Promise:
    """The interval of a rate; a pair of numbers draws the rate of each sample from a beta distribution."""
    truth = _mean_rate(rate)

    def measure(random: Random, sets: int) -> float:
        chances = _chances(random, rate, (sets, samples))
        ends = [_limits(row, tries) for row in random.binomial(tries, chances)]
        return sum(below - 1e-12 <= truth <= above + 1e-12 for below, above in ends) / sets

    return Promise("interval holds the rate", _data(samples, tries, rate), measure, low, 1.0)


def false_pass(samples: int, tries: int, rate: Rate) -> Promise:
    """A bot exactly at the value of a gate on the lower end."""
    truth = _mean_rate(rate)

    def measure(random: Random, sets: int) -> float:
        chances = _chances(random, rate, (sets, samples))
        return sum(_limits(row, tries)[0] >= truth for row in random.binomial(tries, chances)) / sets

    return Promise("`on: lower` passes a bot at the limit", _data(samples, tries, rate), measure, 0.0, FALSE_PASS)


def _mean_rate(rate: Rate) -> float:
    return rate[0] / (rate[0] + rate[1]) if isinstance(rate, tuple) else rate


def _chances(random: Random, rate: Rate, shape: tuple[int, int]) -> Floats:
    return random.beta(rate[0], rate[1], shape) if isinstance(rate, tuple) else np.full(shape, rate)


def _data(samples: int, tries: int, rate: Rate) -> str:
    rates = f"rates of samples Beta{rate}" if isinstance(rate, tuple) else f"{rate:.1%}"
    return f"{samples} samples × {tries}, {rates}"


def grade_promises(samples: int, share: float, low: float = 0.93) -> tuple[Promise, Promise]:
    """Scores of 1, of which a share is 0.5: the interval of the mean, and a gate on its lower end."""
    truth = 1 - share / 2

    def ends(random: Random, sets: int) -> list[tuple[float, float]]:
        counts = random.binomial(samples, share, sets)
        known = {int(each): mean_interval([0.5] * each + [1.0] * (samples - each)) for each in np.unique(counts)}
        return [
            (estimate.low or 0.0, estimate.high or 0.0) for each in counts if (estimate := known[int(each)]) is not None
        ]

    def covers(random: Random, sets: int) -> float:
        return sum(below - 1e-12 <= truth <= above + 1e-12 for below, above in ends(random, sets)) / sets

    def passes(random: Random, sets: int) -> float:
        return sum(below >= truth for below, _ in ends(random, sets)) / sets

    data = f"{samples} graded scores, {share:.0%} of them 0.5"
    return (
        Promise("interval holds the mean", data, covers, low, 1.0),
        Promise("`on: lower` passes a bot at the limit", data, passes, 0.0, FALSE_PASS),
    )


def alike_groups(groups: int, size: int, rate: float, tries: int = 1) -> Promise:
    """Groups that do not differ: how often one is named."""

    def measure(random: Random, sets: int) -> float:
        return sum(bool(_name_groups(random.binomial(tries, rate, (groups, size)), tries)) for _ in range(sets)) / sets

    data = f"{groups} groups of {size} × {tries}, {rate:.0%}"
    return Promise("a group is named, none differs", data, measure, 0.0, RATE + SLACK)


def one_bad_group(groups: int, size: int) -> Promise:
    """One group is bad: which part of the named groups is another one, on average."""

    def measure(random: Random, sets: int) -> float:
        wrong = 0.0
        for _ in range(sets):
            rates = np.where(np.arange(groups) == 0, 0.3, 0.9)[:, None]
            names = _name_groups(random.binomial(1, np.broadcast_to(rates, (groups, size))), 1)
            wrong += len([name for name in names if name != "0"]) / max(1, len(names))
        return wrong / sets

    return Promise(
        "part of the named groups is good", f"{groups} groups of {size}, one bad", measure, 0.0, RATE + SLACK
    )


def _name_groups(passed: NDArray[np.int64], tries: int) -> list[str]:
    samples: Counter[Sample] = Counter()
    for number, group in enumerate(passed):
        for value in group:
            samples[(Cell(frozenset({str(number)}), int(value), tries),)] += 1
    return [
        name for name, difference in group_differences(samples).items() if difference is not None and difference.differs
    ]


def alike_users(first: int, other: int, features: int = 27) -> Promise:
    """Rare, flagged and counted features of alike users: how often any is said to differ."""

    def measure(random: Random, sets: int) -> float:
        number, kinds = first + other, features // 3
        sets = max(1, sets // 4 if number <= 500 else sets // 20)  # they take long
        bounds = [(0.0, 1.0)] * (2 * kinds) + [(-np.inf, np.inf)] * kinds
        wrong = 0
        for _ in range(sets):
            rare = np.where(
                random.random((number, kinds)) < 0.05, random.choice([1 / 3, 0.5, 1.0], (number, kinds)), 0.0
            )
            flags = (random.random((number, kinds)) < 0.06).astype(np.float64)
            values = np.hstack([rare, flags, random.lognormal(2, 0.5, (number, kinds))])
            found = mean_differences(values, range(number), np.arange(number) < first, bounds)
            q_values = adjust_p_values(
                [1.0 if each is None or each.p_value is None else each.p_value for each in found]
            )
            wrong += any(
                q <= RATE and each is not None and each.excludes_zero for q, each in zip(q_values, found, strict=True)
            )
        return wrong / sets

    return Promise("a feature differs, users are alike", f"{first} and {other} users", measure, 0.0, RATE + SLACK)


def _compare_means(differences: Floats, level: float = 0.95) -> PairedDifference:
    return _compared_once(tuple(np.sort(differences).tolist()), level)


@lru_cache(maxsize=200_000)
def _compared_once(differences: tuple[float, ...], level: float) -> PairedDifference:
    paired_difference = difference_of(differences, level)
    assert paired_difference is not None
    return paired_difference


def rare_gain(samples: int, share: float) -> Promise:
    """A share of the samples gains a lot, the others lose a little, and the mean is the same: how often it is worse."""

    def measure(random: Random, sets: int) -> float:
        changes = np.where(random.random((sets, samples)) < share, 1 - share, -share)
        return sum((_compare_means(row).high or 0.0) < 0 for row in changes) / sets

    data = f"{samples} samples, {share:.0%} gain {1 - share:.2f}, the others lose {share:.2f}"
    return Promise("worse by `compare`, same mean", data, measure, 0.0, 0.025 + SLACK)


def even_changes(samples: int, deviation: float) -> Promise:
    """Graded scores change by a normal variable around 0: how often the interval excludes 0 on either side."""

    def measure(random: Random, sets: int) -> float:
        sets = max(1, sets // 4)  # they take long
        differences = [_compare_means(row) for row in random.normal(0.0, deviation, (sets, samples)).clip(-1, 1)]
        return sum((difference.p_value or 0.0) <= 0.05 for difference in differences) / sets

    data = f"{samples} samples, standard deviation {deviation}"
    return Promise("a change by `compare`, same mean", data, measure, 0.0, 0.05 + SLACK)


def gate(graders: Sequence[tuple[Floats, tuple[int, int] | None]]) -> Verdict:
    """Return the verdict of `--fail-on-worse` for the differences of some graders, with the passes lost and gained."""
    rows = [_grade_flips(str(number), differences, flips) for number, (differences, flips) in enumerate(graders)]
    target = TargetComparison(
        target_a="bot", target_b="bot", matched=rows[0].n, unmatched_a=[], unmatched_b=[], graders=rows
    )
    comparison = Comparison(
        suite_a="s", run_a="a", grading_a="a1", suite_b="s", run_b="b", grading_b="b1", targets=[target],
        targets_only_a=[], targets_only_b=[], graders_only_a=[], graders_only_b=[],
    )  # fmt: skip
    ruling = add_ruling(comparison, Tolerance()).ruling
    assert ruling is not None
    return ruling.verdict


def _grade_flips(name: str, differences: Floats, flips: tuple[int, int] | None) -> GraderComparison:
    paired, side = _compare_means(differences), Side(scored=len(differences), errors=0, skipped=0)
    loss = loss_of(paired, differences.tolist(), flips, 0.95)
    return GraderComparison(
        name=name, a=side, b=side, n=paired.n, difference=paired.mean, low=paired.low, high=paired.high,
        p_value=paired.p_value, loss=loss, same_fingerprint=True,
    )  # fmt: skip


def worse_build(graders: int, samples: int, flips: float) -> Promise:
    """No grader changed: how often one of them is worse after the correction of Holm."""

    def measure(random: Random, sets: int) -> float:
        shares = [flips / 2, 1 - flips, flips / 2]
        builds = random.choice([-1.0, 0.0, 1.0], (sets, graders, samples), p=shares)
        return sum(gate([(row, None) for row in build]) == "fail" for build in builds) / sets

    data = f"{graders} graders, {samples} samples, {flips:.0%} flip"
    return Promise("`--fail-on-worse` fails, none changed", data, measure, 0.0, 0.05 + SLACK)


def worse_graded(graders: int, samples: int, deviation: float, *verdicts: Verdict) -> Promise:
    """Graded scores around 0.7, with a threshold of 0.7 that the same noise crosses, and none changed."""

    def measure(random: Random, sets: int) -> float:
        sets = max(1, sets // 4)  # they take long
        return sum(gate(_noisy(random, graders, samples, deviation, 0.0)) in verdicts for _ in range(sets)) / sets

    data = f"{graders} graded with a threshold, {samples} samples, standard deviation {deviation}"
    what = " or ".join(verdicts)
    return Promise(f"`--fail-on-worse` says {what}, none changed", data, measure, 0.0, 0.05 * len(verdicts) + SLACK)


def _noisy(
    random: Random, graders: int, samples: int, deviation: float, lost: float
) -> list[tuple[Floats, tuple[int, int]]]:
    """Return differences and flips of graders whose scores vary around 0.7 on both sides, and fall on b."""
    before = random.normal(0.7, deviation, (graders, samples)).clip(0, 1)
    after = random.normal(0.7 - lost, deviation, (graders, samples)).clip(0, 1)
    passed, passes = before >= 0.7, after >= 0.7
    flips = zip((passed & ~passes).sum(axis=1).tolist(), (passes & ~passed).sum(axis=1).tolist(), strict=True)
    return list(zip(after - before, flips, strict=True))


def loss_shown(samples: int, lost: float, deviation: float, low: float, *verdicts: Verdict) -> Promise:
    """One graded grader without a threshold loses on average: how often the gate says so."""

    def measure(random: Random, sets: int) -> float:
        sets = max(1, sets // 4)  # they take long
        changes = random.normal(-lost, deviation, (sets, samples)).clip(-1, 1)
        return sum(gate([(row, None)]) in verdicts for row in changes) / sets

    data = f"{samples} samples lose {lost}, standard deviation {deviation}"
    return Promise(f"`--fail-on-worse` says {' or '.join(verdicts)}", data, measure, low, 1.0)


def detectable(samples: int, flips: float, low: float = POWER - 0.05) -> Promise:
    """A change as large as a comparison says: how often another such comparison shows it."""

    def measure(random: Random, sets: int) -> float:
        seen = 0
        for _ in range(sets):
            before = random.choice([-1.0, 0.0, 1.0], samples, p=[flips / 2, 1 - flips, flips / 2])
            lost = min(1 - flips / 2, flips / 2 + (_compare_means(before).detectable or 1.0))
            after = random.choice([-1.0, 0.0, 1.0], samples, p=[lost, max(0.0, 1 - lost - flips / 2), flips / 2])
            seen += (_compare_means(after).high or 0.0) < 0
        return seen / sets

    return Promise("a detectable change shows", f"{samples} samples, {flips:.0%} flip", measure, low, 1.0)


def best_target(targets: int, samples: int, rate: float) -> Promise:
    """Targets that are alike: how often one is called best."""

    def measure(random: Random, sets: int) -> float:
        wrong = 0
        for _ in range(sets):
            hard = random.random(samples)
            own = random.random((targets, samples))
            scores = (np.where(random.random((targets, samples)) < 0.7, hard, own) < rate).astype(np.float64)
            first = int(scores.mean(axis=1).argmax())
            level = 1 - 0.05 / (targets - 1)
            differences = [_compare_means(scores[first] - scores[n], level) for n in range(targets) if n != first]
            wrong += all(difference.low is not None and difference.low > 0 for difference in differences)
        return wrong / sets

    return Promise(
        "a target is best, all are alike", f"{targets} targets, {samples} samples", measure, 0.0, 0.05 + SLACK
    )


def plan_promise(samples: int, trials: int, rate: float) -> Promise:
    """Plans that are learnt from a pilot: how often the planned size has less than 70% power, with 80% promised."""

    def measure(random: Random, sets: int) -> float:
        short = 0
        for _ in range(sets):
            pilot = (random.random((samples, trials)) < rate).astype(np.float64)
            variance = trial_variance({str(number): row.tolist() for number, row in enumerate(pilot)})
            assert variance is not None
            short += _power(samples_for(0.1, variance.high, 1, POWER) or 0, rate) < 0.7
        return short / sets

    data = f"pilot of {samples} × {trials}, {rate:.0%}, a fall by 0.1"
    return Promise("a plan has less than 70% power", data, measure, 0.0, 0.1)


@lru_cache
def _power(samples: int, rate: float) -> float:
    """Return how often a fall by 0.1 shows in so many single trials of each side."""
    after = rate - 0.1
    return change_shown(samples, rate * (1 - after), (1 - rate) * after)


def change_shown(samples: int, lose: float, gain: float, alpha: float = 0.025) -> float:
    """Return exactly how often samples of which shares turn to failures and to passes show that b is worse.

    Of those that turn, McNemar's exact test has a one-sided p value of at most `alpha`: 2.5% where the interval
    excludes 0, and 5% where `--fail-on-worse` fails.
    """
    turns = _binomial(samples, lose + gain)
    return float(turns @ [_show_gain(turned, gain / (lose + gain), alpha) for turned in range(samples + 1)])


def _show_gain(turned: int, gain: float, alpha: float) -> float:
    """Return how often so few of those that turned are passes that McNemar's test sees the others as worse."""
    few = int((_binomial(turned, 0.5).cumsum() <= alpha + 1e-12).sum())
    return float(_binomial(turned, gain)[:few].sum())


@lru_cache(maxsize=10_000)
def _binomial(tries: int, rate: float) -> Floats:
    """Return the probability of each number of passes."""
    passed = np.arange(tries + 1)
    if rate in (0.0, 1.0):
        return (passed == tries * rate).astype(np.float64)
    factorials = np.concatenate([[0.0], np.log(np.arange(1, tries + 1)).cumsum()])
    ways = factorials[tries] - factorials - factorials[::-1]
    return np.exp(ways + passed * np.log(rate) + (tries - passed) * np.log1p(-rate))


def let_through(labels: int, right: float) -> Promise:
    """A judge whose κ is just below what a gate needs: how often the lower end lets it decide."""
    truth = 2 * right - 1  # half of all are good, and the judge is as often right about both kinds

    def measure(random: Random, sets: int) -> float:
        passed = 0
        for _ in range(sets):
            good = random.random(labels) < 0.5
            verdicts = np.where(random.random(labels) < right, good, ~good)
            interval = agreement(verdicts.tolist(), good.tolist()).kappa_interval()
            passed += interval is not None and interval[0] >= truth
        return passed / sets

    return Promise("`needs_calibration` lets a judge at κ pass", f"{labels} labels, κ {truth:.2f}", measure, 0.0, 0.05)


PROMISES: tuple[Promise, ...] = (
    covers(10, 1, 0.8),
    covers(50, 1, 0.5),
    covers(100, 1, 0.9),
    covers(100, 1, 0.97, low=0.9),
    covers(30, 3, 0.9),
    covers(100, 3, 0.99),
    covers(30, 3, (9.0, 1.0)),
    covers(100, 3, (4.0, 1.0)),
    covers(100, 5, (0.5, 0.5)),
    covers(30, 5, 0.02),
    covers(100, 3, 0.01),
    false_pass(100, 1, 0.9),
    false_pass(100, 1, 0.97),
    false_pass(30, 3, 0.9),
    false_pass(20, 5, 0.95),
    false_pass(50, 5, 0.98),
    false_pass(100, 3, 0.99),
    false_pass(200, 3, 0.995),
    false_pass(300, 5, 0.998),
    false_pass(30, 3, (2.0, 0.1)),
    false_pass(100, 3, (20.0, 0.4)),
    false_pass(100, 3, (0.5, 0.5)),
    *grade_promises(20, 0.2),
    *grade_promises(50, 0.1),
    *grade_promises(100, 0.05),
    alike_groups(3, 4, 0.5),
    alike_groups(5, 20, 0.9),
    alike_groups(20, 10, 0.97),
    alike_groups(50, 4, 0.97),
    alike_groups(50, 100, 0.99),
    alike_groups(50, 100, 0.5),
    alike_groups(10, 10, 0.9, tries=3),
    one_bad_group(3, 20),
    one_bad_group(5, 30),
    one_bad_group(10, 50),
    alike_users(6, 200),
    alike_users(20, 20),
    alike_users(20, 500),
    alike_users(60, 240),
    alike_users(60, 1000),
    alike_users(1000, 1000),
    *(rare_gain(samples, 0.05) for samples in (6, 10, 20, 50, 100)),
    *(rare_gain(samples, 0.02) for samples in (6, 20, 100)),
    even_changes(20, 0.2),
    even_changes(100, 0.2),
    even_changes(500, 0.05),
    even_changes(500, 0.2),
    even_changes(1000, 0.2),
    worse_build(1, 50, 0.2),
    worse_build(3, 50, 0.2),
    worse_build(10, 50, 0.2),
    worse_build(20, 50, 0.2),
    worse_graded(1, 20, 0.02, "fail"),
    worse_graded(1, 50, 0.1, "fail"),
    worse_graded(1, 100, 0.2, "fail"),
    worse_graded(5, 50, 0.1, "fail"),
    worse_graded(1, 50, 0.1, "fail", "inconclusive"),
    loss_shown(50, 0.05, 0.1, 0.08, "fail"),
    loss_shown(50, 0.05, 0.1, 0.9, "fail", "inconclusive"),
    loss_shown(100, 0.05, 0.1, 0.9, "fail"),
    detectable(10, 0.2, low=0.65),
    detectable(20, 0.1),
    detectable(50, 0.2),
    detectable(200, 0.1),
    best_target(2, 40, 0.8),
    best_target(5, 100, 0.8),
    plan_promise(2, 1, 0.9),
    plan_promise(10, 1, 0.9),
    plan_promise(10, 2, 0.8),
    plan_promise(30, 4, 0.9),
    let_through(50, 0.8),
    let_through(200, 0.8),
)


SIZES = (1, 3, 5, 10, 20, 30, 50, 100)
"""Numbers of samples of which exact rates are printed."""
RANGES = ((0.5, 1.0), (0.1, 0.5), (0.0, 0.1))
"""Ranges of limits and rates, the last one of each with the worst rates."""


def highest_false_pass(samples: int, low: float, high: float) -> tuple[float, float]:
    """Return how often `on: lower` passes a bot at the worst limit from `low` to `high`, and that limit.

    It grows with the limit up to the lower end of a number of passes, where that number no longer passes.
    """
    ends = [wilson(passed, samples)[0] for passed in range(samples + 1)]
    limits = [end for end in ends if low <= end <= high and end > 0] + [high]
    passes = [np.array(ends) >= limit for limit in limits]
    rates = [float(_binomial(samples, limit) @ passing) for limit, passing in zip(limits, passes, strict=True)]
    return max(zip(rates, limits, strict=True))


def coverage(samples: int, rate: float) -> float:
    """Return how often Wilson's interval of single passes holds a rate."""
    ends = np.array([wilson(passed, samples) for passed in range(samples + 1)])
    holds = (ends[:, 0] <= rate + 1e-12) & (rate - 1e-12 <= ends[:, 1])
    return float(_binomial(samples, rate) @ holds)


def lowest_coverage(samples: int, low: float, high: float) -> tuple[float, float]:
    """Return the lowest coverage of Wilson's interval for rates from `low` to `high`, and the rate.

    It is lowest just outside of the end of an interval.
    """
    ends = {end for passed in range(samples + 1) for end in wilson(passed, samples)}
    near = [end + side for end in ends for side in (-1e-9, 1e-9)]
    return min((coverage(samples, rate), rate) for rate in [low, high, *near] if low <= rate <= high and 0 < rate < 1)


def two_values(samples: int, score: float, rate: float) -> tuple[float, float]:
    """Return the coverage of scores that are `score` at a rate and otherwise 0, and how often `on: lower` passes them.

    The gate's value is their mean.
    """
    ends, mean = _ends_of_two(samples, score), score * rate
    chances = _binomial(samples, rate)
    holds = (ends[:, 0] <= mean + 1e-12) & (mean - 1e-12 <= ends[:, 1])
    return float(chances @ holds), float(chances @ (ends[:, 0] >= mean - 1e-15))


@lru_cache
def _ends_of_two(samples: int, score: float) -> Floats:
    """Return the interval of the mean for each number of scores that are not 0."""
    estimates = [mean_interval([score] * number + [0.0] * (samples - number)) for number in range(samples + 1)]
    return np.array([(estimate.low, estimate.high) for estimate in estimates if estimate is not None])


def worst_of_two(samples: int, score: float) -> tuple[float, float, float]:
    """Return of two-valued scores the lowest coverage with a mean of 10% to 90%, and outside, and the most passes.

    All are worst beside the end of an interval. `on: lower` passes most at a limit from 50% on.
    """
    ends = _ends_of_two(samples, score).ravel().tolist()
    means = sorted({end + side for end in ends for side in (-1e-9, 0.0, 1e-9) if 0 < end + side < score})
    rates = [(mean, *two_values(samples, score, mean / score)) for mean in means]
    return (
        min(covered for mean, covered, _ in rates if 0.1 <= mean <= 0.9),
        min(covered for mean, covered, _ in rates if not 0.1 <= mean <= 0.9),
        max((passed for mean, _, passed in rates if mean >= 0.5), default=0.0),
    )


def rare_gain_false_alarm(samples: int, share: float) -> tuple[float, float]:
    """Return how often `--fail-on-worse` and the 95% interval find b worse, where the mean is the same.

    A share of the samples gains 1, and the others lose as much together. Exact, over all numbers of gains.
    """
    lost, fails, excludes = share / (1 - share), 0.0, 0.0
    for gains, chance in enumerate(_binomial(samples, share).tolist()):
        p_value = bounded_mean([1.0] * gains + [-lost] * (samples - gains), (-1.0, 1.0)).below_p_value
        fails += chance * (p_value <= 0.05)
        excludes += chance * (p_value <= 0.025)
        if p_value > 0.05:  # more gains make it higher
            break
    return fails, excludes


def kappa_coverage(labels: int, right: float) -> float:
    """Return how often the interval of κ holds it, where a judge has one; half of all labels are good.

    The judge is as often right about both kinds, so that κ is 2 · `right` - 1. Exact, over all tables of counts.
    """
    holds = known = 0.0
    for hits, chance in enumerate(_binomial(labels, right).tolist()):
        for good_hits, of_hits in enumerate(_binomial(hits, 0.5).tolist()):
            for good_misses, of_misses in enumerate(_binomial(labels - hits, 0.5).tolist()):
                bad_hits, bad_misses = hits - good_hits, labels - hits - good_misses
                verdicts = [True] * good_hits + [False] * good_misses + [False] * bad_hits + [True] * bad_misses
                truth = [True] * (good_hits + good_misses) + [False] * (bad_hits + bad_misses)
                interval = agreement(verdicts, truth).kappa_interval()
                if interval is not None:
                    known += chance * of_hits * of_misses
                    inside = interval[0] - 1e-12 <= 2 * right - 1 <= interval[1] + 1e-12
                    holds += chance * of_hits * of_misses * inside
    return holds / known


def highest_false_change(samples: int, alpha: float = 0.025) -> tuple[float, float]:
    """Return how often `compare` finds b worse where as many samples turn to passes as to failures, at the worst share.

    The share of samples that turn is one of 1% to 100%; see `change_shown` for `alpha`.
    """
    return max((change_shown(samples, share / 200, share / 200, alpha), share / 100) for share in range(1, 101))


def exact_tables() -> None:
    """Print the exact rates of Wilson's interval and of comparisons of passes and failures."""
    heads = [f"{low:.0%} to {high:.0%}" for low, high in RANGES]
    print("\n| samples |", *(f"false pass, limits {head} |" for head in heads), "lowest coverage, rates 10% to 90% |",
          "90% to 100% | worse by `compare`, same rate | `--fail-on-worse` fails, same rate |")  # fmt: skip
    print("|---:|" + "---|" * 7)
    for samples in SIZES:
        cells = [highest_false_pass(samples, *limits) for limits in RANGES]
        cells += [lowest_coverage(samples, *rates) for rates in ((0.1, 0.9), (0.9, 1.0))]
        cells += [highest_false_change(samples), highest_false_change(samples, 0.05)]
        print(f"| {samples} |", *(f"{rate:.1%} ({where:.1%}) |" for rate, where in cells))
    heads = [
        "samples, scores of 0 or …",
        "lowest coverage, means 10% to 90%",
        "other means",
        "false pass, limits ≥ 50%",
    ]
    print("\n|", *(f"{head} |" for head in heads))
    print("|---|---|---|---|")
    for samples, score in ((20, 0.9), (100, 0.9), (20, 0.99), (100, 0.99)):
        print(f"| {samples}, {score} |", *(f"{rate:.1%} |" for rate in worst_of_two(samples, score)))
    print("\n| labels | coverage of κ 0.6 | κ 0.8 | κ 0.9 |\n|---|---|---|---|")
    for labels in (10, 20, 30):
        print(f"| {labels} |", *(f"{kappa_coverage(labels, right):.1%} |" for right in (0.8, 0.9, 0.95)))
    print("\n| samples, share that gains 1 | `--fail-on-worse` fails, same mean | the interval excludes 0 |")
    print("|---|---|---|")
    for samples, share in ((20, 0.05), (59, 0.05), (72, 0.05), (93, 0.05), (100, 0.05), (183, 0.02), (236, 0.02)):
        print(f"| {samples}, {share:.0%} |", *(f"{rate:.2%} |" for rate in rare_gain_false_alarm(samples, share)))


def main() -> None:
    """Print a row for each promise."""
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else SETS
    print("| promise | data | asked | measured | |\n|---|---|---:|---:|---|")
    for promise in PROMISES:
        rate = promise.measured(sets)
        question = f"≥ {promise.low:.1%}" if promise.high == 1.0 else f"≤ {promise.high:.1%}"
        verdict = "kept" if promise.low <= rate <= promise.high else "NOT KEPT"
        print(f"| {promise.what} | {promise.data} | {question} | {rate:.1%} | {verdict} |", flush=True)
    exact_tables()


if __name__ == "__main__":
    main()
