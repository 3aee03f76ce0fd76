"""How often a search for the turn at which the odds fell names a wrong one, and what it costs: `python bench/forks.py`.

Each row is a curve: the odds of a continuation from each turn. `right` is how often the search names the turn of the
fall, `wrong` how often another one, at most 5%; `none` how often none. `search` is the mean number of trials. `fixed`
is the smallest number with equally many at each turn with which Fisher's exact test, at a level for all turns, names
the turn as often; nobody knows it beforehand. The search should need at most half of it.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import hypergeom

from vivavoce.stats.turning_point import LEVEL, ROUND, Tried, fall, next_place

RUNS = 200
MAX_TRIALS = 150
ALLOWED = 0.05
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """A curve: the odds before the fall and after it, the turn of the fall from 1, and how many turns there are."""

    name: str
    odds: tuple[float, ...]
    turn: int | None

    @property
    def turns(self) -> int:
        """How many turns the conversation has."""
        return len(self.odds)


def one_fall(before: float, after: float, turn: int, turns: int) -> Case:
    """Return a curve with one fall."""
    odds = tuple(before if place < turn else after for place in range(turns))
    return Case(f"{before:.0%} to {after:.0%}, turn {turn} of {turns}", odds, turn)


CASES = (
    one_fall(0.9, 0.05, 3, 6),
    one_fall(0.9, 0.1, 5, 10),
    one_fall(0.7, 0.05, 2, 10),
    one_fall(0.8, 0.1, 13, 20),
    one_fall(0.5, 0.0, 4, 6),
    one_fall(0.8, 0.3, 4, 8),
    one_fall(1.0, 0.0, 7, 10),
    one_fall(0.7, 0.0, 10, 10),
    one_fall(0.9, 0.1, 1, 3),
    Case("fails from the beginning", (0.0,) * 8, None),
    Case("declines slowly", tuple(np.linspace(0.95, 0.05, 10).tolist()), None),
    Case("rises to the end", (0.4, 0.5, 0.6, 0.7, 0.8), 5),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the simulated searches: shares, and numbers of trials."""

    right: float
    wrong: float
    none: float
    search: float
    fixed: int | None


def simulate(case: Case) -> Outcome:
    """Simulate searches of a case, and the fixed design that is as good."""
    random = np.random.default_rng(1)
    names: list[int | None] = []
    spent = 0
    for _ in range(RUNS):
        places = [Tried() for _ in case.odds]
        while sum(place.tried for place in places) < MAX_TRIALS and (place := next_place(places)) is not None:
            passed, tried = places[place]
            places[place] = Tried(passed + int(random.binomial(ROUND, case.odds[place])), tried + ROUND)
        names.append(fall(places).turn)
        spent += sum(place.tried for place in places)
    right = sum(turn is not None and turn == case.turn for turn in names) / RUNS
    none = sum(turn is None for turn in names) / RUNS
    fixed = None if case.turn is None else fixed_design(case, right, random)
    return Outcome(right, 1 - right - none, none, spent / RUNS, fixed)


def fixed_design(case: Case, right: float, random: np.random.Generator) -> int | None:
    """Return the trials of the smallest design with equally many at each turn that names the turn as often."""
    for some in range(2, 200):
        binomial = random.binomial(some, case.odds, size=(RUNS, case.turns))
        falls = binomial - np.concatenate([binomial[:, 1:], np.zeros((RUNS, 1), dtype=binomial.dtype)], axis=1)
        turns = falls.argmax(axis=1) + 1
        before = binomial[np.arange(RUNS), turns - 1]
        after = np.where(turns < case.turns, binomial[np.arange(RUNS), np.minimum(turns, case.turns - 1)], 0)
        chances = hypergeom.sf(before - 1, 2 * some, before + after, some)  # pyright: ignore
        is_shown = np.where(turns == case.turns, before > 0, chances < (1 - LEVEL) / case.turns)
        if np.mean(is_shown & (turns == case.turn)) >= right:
            return some * case.turns
    return None


def main() -> int:
    """Print a row for each case; 1 if a wrong turn is named more often than allowed, or the search is no cheaper."""
    with ProcessPoolExecutor() as pool:
        outcomes = list(pool.map(simulate, CASES))
    print(
        f"the turn at which the odds fell: {RUNS:,} searches each, at most {MAX_TRIALS} trials, "
        f"{ALLOWED:.0%} may be wrong"
    )
    print(f"{'curve':<28}{'right':>8}{'wrong':>8}{'none':>8}{'search':>8}{'fixed':>7}{'ratio':>7}")
    dear = False
    for case, outcome in zip(CASES, outcomes, strict=True):
        ratio = None if outcome.fixed is None else outcome.search / outcome.fixed
        dear |= ratio is not None and ratio > HALF and case.turns > 5
        ends = f"{outcome.fixed or '–':>7}{'–' if ratio is None else f'{ratio:.2f}':>7}"
        print(
            f"{case.name:<28}{outcome.right:>8.1%}{outcome.wrong:>8.1%}{outcome.none:>8.1%}{outcome.search:>8.1f}{ends}"
        )
    return int(dear or any(one.wrong > ALLOWED for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
