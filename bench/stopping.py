"""How often trials that end early decide wrongly, over 10,000 simulated runs: `python bench/stopping.py`.

Each run makes rounds of trials until its interval is on one side of the gate, and 50 at most. It is wrong if it decided
for the side on which the target is not; at most 5% may be. `missed` is how often the interval did not hold the target's
mean when the run ended, and `fixed` is how often the same peeking with the interval of a fixed number decides wrongly.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from vivavoce.stats.intervals import share_interval
from vivavoce.stats.sequential import sequence

RUNS = 10_000
MAX_TRIALS = 50
ALLOWED = 0.05


@dataclass(frozen=True, slots=True)
class Case:
    """Samples whose chances of passing have the mean `mean` and are as far apart as a beta distribution has them."""

    samples: int
    spread: float
    mean: float
    gate: float
    most: int = MAX_TRIALS


CASES = (
    Case(10, 10, 0.8, 0.8),
    Case(10, 10, 0.79, 0.8),
    Case(30, 2, 0.8, 0.8),
    Case(30, 2, 0.9, 0.8),
    Case(30, 2, 0.7, 0.8),
    Case(5, 1000, 0.5, 0.5),
    Case(5, 1000, 0.95, 0.95),
    Case(100, 1, 0.9, 0.9, 20),
    Case(100, 1, 0.95, 0.9, 20),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the simulated runs: shares, and the mean number of rounds."""

    wrong: float
    undecided: float
    missed: float
    fixed: float
    rounds: float


def chances(random: np.random.Generator, case: Case) -> np.ndarray:
    """Return chances whose mean is that of the case: half of the samples below, as far as the other half is above."""
    half = case.samples // 2
    beta = random.beta(case.mean * case.spread, (1 - case.mean) * case.spread, half)
    apart = np.minimum(np.abs(beta - case.mean), min(case.mean, 1 - case.mean))
    return np.concatenate([case.mean - apart, case.mean + apart, np.full(case.samples - 2 * half, case.mean)])


def simulate(case: Case, runs: int = RUNS, seed: int = 1) -> Outcome:
    """Simulate runs of a case."""
    random = np.random.default_rng(seed)
    wrong = undecided = missed = fixed = rounds = 0
    for _ in range(runs):
        trials = (random.random((case.samples, case.most)) < chances(random, case)[:, None]).astype(float)
        limits = sequence(trials[:, :1])
        for many in range(1, case.most + 1):
            limits = sequence(trials[:, :many])
            if limits.low > case.gate or limits.high < case.gate:
                break
        side = (limits.low > case.gate) - (limits.high < case.gate)
        undecided += not side
        wrong += bool(side) and side != np.sign(round(case.mean - case.gate, 9))
        missed += not limits.low <= case.mean <= limits.high
        rounds += limits.rounds
        fixed += peek(trials, case)
    return Outcome(wrong / runs, undecided / runs, missed / runs, fixed / runs, rounds / runs)


def peek(trials: np.ndarray, case: Case) -> bool:
    """Return whether a look at the interval of a fixed number after every round decides wrongly."""
    passed = np.cumsum(trials, axis=1).astype(int)
    for many in range(1, case.most + 1):
        of = passed[:, many - 1]
        estimate = share_interval(Counter((passed_of, many) for passed_of in of.tolist()))
        if estimate is None or estimate.low is None or estimate.high is None:
            continue
        side = (estimate.low > case.gate) - (estimate.high < case.gate)
        if side:
            return bool(side != np.sign(round(case.mean - case.gate, 9)))
    return False


def main() -> int:
    """Print a row for each case; 1 if one is wrong more often than allowed."""
    with ProcessPoolExecutor() as pool:
        outcomes = list(pool.map(simulate, CASES))
    print(f"trials that end early: {RUNS:,} runs each, at most {ALLOWED:.0%} may decide wrongly")
    print(f"{'samples':>8}{'mean':>7}{'gate':>7}{'wrong':>8}{'missed':>8}{'undecided':>11}{'rounds':>8}{'fixed':>8}")
    for case, outcome in zip(CASES, outcomes, strict=True):
        print(
            f"{case.samples:>8}{case.mean:>7.2f}{case.gate:>7.2f}{outcome.wrong:>8.2%}{outcome.missed:>8.2%}"
            f"{outcome.undecided:>11.1%}{outcome.rounds:>5.1f}/{case.most}{outcome.fixed:>8.2%}"
        )
    return int(any(one.wrong > ALLOWED or one.missed > ALLOWED for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
