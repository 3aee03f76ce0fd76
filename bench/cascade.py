"""How well the thresholds of a cascade are chosen, over 300 simulated sets of labels a case: `python bench/cascade.py`.

A small judge is right as often as it is sure, from 0.5 to 1, unless it is `boasting`. A large one is right in 92%;
where both find the same ones `hard`, more often where the small one is sure. Thresholds are chosen on one half of the
labels, as `viva calibrate cascade` does. `within` is how often the agreement of the cascade on the other half is
within the 95% interval of the large judge there, and `naive` the same for the cheapest thresholds of which that holds
on the half to choose by, without a margin. `loss` is the accuracy lost against the large judge on 20,000 others,
`cost` the share of its cost there, and `≤35%` how often that is at most 35%.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from vivavoce.features.calibration.thresholds import Labelled, Thresholds, between, choose_thresholds
from vivavoce.stats.intervals import wilson

SETS = 300
FRESH = 20_000
LEAST_WITHIN = 0.75
"""The margin is half the interval, which leaves no more room for the chance of the other half than this."""


@dataclass(frozen=True, slots=True)
class Case:
    """Labels, the accuracy of the small judge, and what its verdict costs as a share of one of the large judge."""

    labels: int
    small: float
    price: float = 0.1
    boasting: bool = False
    hard: bool = False


CASES = (
    Case(100, 0.85),
    Case(100, 0.9),
    Case(200, 0.75),
    Case(200, 0.85),
    Case(200, 0.9),
    Case(200, 0.9, 0.05),
    Case(200, 0.85, boasting=True),
    Case(200, 0.85, hard=True),
    Case(1000, 0.75),
    Case(1000, 0.85),
    Case(1000, 0.9),
    Case(1000, 0.9, 0.05),
    Case(1000, 0.85, hard=True),
)


@dataclass(slots=True)
class Outcome:
    """What came of the simulated sets, one value for each in which thresholds were chosen."""

    within: list[bool] = field(default_factory=list[bool])
    naive: list[bool] = field(default_factory=list[bool])
    costs: list[float] = field(default_factory=list[float])
    losses: list[float] = field(default_factory=list[float])


def judged(random: np.random.Generator, case: Case, n: int) -> Labelled:
    """Return labels with what both judges say of them."""
    good = random.random(n) < 0.6
    mean = 2 * case.small - 1
    sure = np.round(0.5 + 0.5 * random.beta(3 * mean, 3 * (1 - mean), n), 2)
    right = 0.5 + 0.7 * (sure - 0.5) if case.boasting else sure
    first = np.where(random.random(n) < right, good, ~good)
    often = 0.84 + 0.08 * (sure - 0.5) / (case.small - 0.5) if case.hard else np.full(n, 0.92)
    then = np.where(random.random(n) < often, good, ~good)
    low, high = np.where(first, np.inf, 1 - sure), np.where(first, sure, -np.inf)
    return Labelled(good, low, high, then, np.full(n, case.price), np.ones(n), range(n), np.ones(n))


def cheapest(cases: Labelled) -> Thresholds | None:
    """Return the cheapest thresholds whose accuracy is in the interval of the large judge on the same labels."""
    least, best = lower(cases), None
    tried = [None, *between(np.concatenate([cases.low[np.isfinite(cases.low)], cases.high[np.isfinite(cases.high)]]))]
    for low in tried[::2]:
        for high in tried[::2]:
            if low is not None and high is not None and low >= high:
                continue
            result = Thresholds(low, high).of(cases)
            if np.mean(result.passed == cases.good) >= least and (best is None or result.cost < best[0]):
                best = (result.cost, Thresholds(low, high))
    return None if best is None else best[1]


def lower(cases: Labelled) -> float:
    """Return the lower end of the interval of the large judge's accuracy."""
    return wilson(float(np.sum(cases.then == cases.good)), len(cases.good))[0]


def accuracy(thresholds: Thresholds, cases: Labelled) -> float:
    """Return how often a cascade is right."""
    return float(np.mean(thresholds.of(cases).passed == cases.good))


def simulate(case: Case, sets: int = SETS, seed: int = 1) -> Outcome:
    """Choose thresholds on sets of labels, and look at others."""
    random, outcome = np.random.default_rng(seed), Outcome()
    many = judged(random, case, FRESH)
    alone = float(np.mean(many.then == many.good))
    for number in range(sets):
        half, other = judged(random, case, case.labels // 2), judged(random, case, case.labels // 2)
        choice = choose_thresholds(half)
        if choice is not None:
            outcome.within.append(accuracy(choice.thresholds, other) >= lower(other))
            outcome.costs.append(choice.thresholds.of(many).cost)
            outcome.losses.append(alone - accuracy(choice.thresholds, many))
        if number < sets // 5 and (quick := cheapest(half)) is not None:
            outcome.naive.append(accuracy(quick, other) >= lower(other))
    return outcome


def time_threshold(n: int = 100_000) -> float:
    """Return the seconds that a choice on many labels takes."""
    cases = judged(np.random.default_rng(1), Case(n, 0.85), n)
    start = time.perf_counter()
    choose_thresholds(cases)
    return time.perf_counter() - start


def main() -> int:
    """Print a row for each case; 1 if one is within the interval too rarely."""
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(simulate, CASES))
    print(f"cascades chosen on one half of the labels: {SETS} sets each, large judge right in 92%")
    print(
        f"{'labels':>7}{'small':>7}{'price':>7}{'':>10}{'chosen':>8}{'within':>8}{'naive':>8}{'loss':>7}"
        f"{'cost':>7}{'≤35%':>7}"
    )
    for case, outcome in zip(CASES, rows, strict=True):
        kind = "boasting" if case.boasting else "hard" if case.hard else ""
        print(
            f"{case.labels:>7}{case.small:>7.2f}{case.price:>7.2f}{kind:>10}{len(outcome.within) / SETS:>8.0%}"
            f"{np.mean(outcome.within):>8.0%}{np.mean(outcome.naive):>8.0%}{np.mean(outcome.losses):>7.3f}"
            f"{np.mean(outcome.costs):>7.0%}{np.mean(np.array(outcome.costs) <= 0.35):>7.0%}"
        )
    print(f"100,000 labels: {time_threshold():.2f} s for every pair of thresholds")
    return int(any(np.mean(one.within) < LEAST_WITHIN for one in rows))


if __name__ == "__main__":
    sys.exit(main())
