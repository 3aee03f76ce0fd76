"""The turn at which the odds of a conversation fell, from continuations that are tried where they say most.

A conversation of T turns that failed can be gone on from T places: place k is after its first k turns, so that place 0
is its beginning. Each continuation succeeds or not. Turn j is where the odds fell if those who go on before it succeed
more often than those who go on after it; after the last turn there is nothing to try, for the conversation failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95
"""The chance that a turn is not named at which the odds did not fall, and that the interval of a place holds."""
SURE = 0.95
"""The probability from which a turn is taken to be the one, so that the places around it are compared."""
SELDOM = 0.3
"""Where the odds at the beginning are certainly below this, the conversation goes wrong from there, and not later."""
ROUND = 3
"""How many continuations of a place are tried between two looks."""

_PRIOR = 0.5
_STEPS: Floats = np.linspace(0.02, 0.98, 25)
_BEFORE, _AFTER = (
    index.astype(np.intp) for index in np.nonzero(_STEPS[None, :] <= _STEPS[:, None] / 2)
)  # pairs of odds, those after the fall at most half of those before
_LOG, _LOG_NOT = np.log(_STEPS), np.log1p(-_STEPS)


class Tried(NamedTuple):
    """The continuations of one place that were graded: how many of how many succeeded."""

    passed: int = 0
    tried: int = 0

    @property
    def share(self) -> float | None:
        """How many succeeded, from 0 to 1; None where none was tried."""
        return self.passed / self.tried if self.tried else None


class Share(NamedTuple):
    """An interval of a probability."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TurningPoint:
    """What the continuations show: `turn` counts from 1 and is the one at which the odds fell, None where none is.

    `seldom` says that the conversation goes wrong from its beginning. With neither, nothing is known yet.
    """

    turn: int | None = None
    seldom: bool = False

    @property
    def known(self) -> bool:
        """Whether there is an answer."""
        return self.turn is not None or self.seldom


@lru_cache(maxsize=4096)
def share_limits(passed: int, tried: int, level: float = LEVEL) -> Share:
    """Return the interval of a probability that holds however often one looked before, and whenever one stopped.

    It holds each p at which the likelihood of the trials is not 1 / (1 - level) times smaller than its mean over a
    Beta(1/2, 1/2) distribution of p. That ratio has the mean 1 for the true p, so by Ville's inequality it is ever so
    large with a chance of 1 - level at most.

    Source: H. Robbins, Statistical methods related to the law of the iterated logarithm, Annals of Mathematical
    Statistics 41 (1970).
    """
    if not tried:
        return Share(0.0, 1.0)
    failed, least = tried - passed, _log_mixture(passed, tried) + math.log(1 - level)

    def inside(p: float) -> bool:
        return passed * math.log(p) + failed * math.log1p(-p) >= least

    best = min(max(passed / tried, 1e-12), 1 - 1e-12)
    low = 0.0 if not passed else _edge(1e-12, best, inside)
    high = 1.0 if not failed else _edge(1 - 1e-12, best, inside)
    return Share(low, high)


def fell(before: Tried, after: Tried, level: float = LEVEL) -> bool:
    """Return whether the odds after something are lower than before it, however often one looked.

    The likelihood of all trials, its mean over a Beta(1/2, 1/2) distribution of each of the two probabilities, is
    compared with the largest that it has where the odds did not fall, which is at one probability for both. The ratio
    is ever above 1 / (1 - level) with a chance of 1 - level at most where they did not, whichever of the two was tried
    when.

    Source: R. Turner, A. Ly and P. Grünwald, Generic E-variables for exact sequential k-sample tests,
    arXiv:2106.02693 (2021); with a mixture in place of their estimate.
    """
    if not before.tried or not after.tried or before.passed * after.tried <= after.passed * before.tried:
        return False
    passed, tried = before.passed + after.passed, before.tried + after.tried
    same = _log_likelihood(passed, tried)
    return _log_mixture(*before) + _log_mixture(*after) - same >= -math.log(1 - level)


def fall(places: Sequence[Tried], level: float = LEVEL) -> TurningPoint:
    """Return what the continuations show so far.

    A turn is named when it is the one with a probability of `SURE`, see `turn_probabilities`, and the odds before and
    after it differ by `fell`. That test counts as often as there are turns: it does not depend on how likely the turns
    are, nor on which places were tried.

    Raises:
        ValueError: there is no place.
    """
    if not places:
        raise ValueError("a conversation without turns cannot be continued")
    if share_limits(*places[0], level).high < SELDOM:
        return TurningPoint(seldom=True)
    chances = turn_probabilities(places)
    turn = int(chances.argmax()) + 1
    if chances[turn - 1] < SURE or not _differs(places, turn, level):
        return TurningPoint()
    return TurningPoint(turn)


def next_place(places: Sequence[Tried], level: float = LEVEL) -> int | None:
    """Return the place from which the next continuations say most, None where the answer is known.

    As long as nothing succeeded it is the beginning. Then it is where a trial is expected to leave the least doubt, as
    the entropy of `turn_probabilities`; and once a turn is likely enough, the place before or after it that was tried
    less.

    Source of the choice: R. Waeber, P. Frazier and S. Henderson, Bisection search with noisy responses, SIAM Journal on
    Control and Optimization 51 (2013), for which the probabilities before and after need not be known here.
    """
    if fall(places, level).known:
        return None
    if not any(place.passed for place in places):
        return 0
    chances = turn_probabilities(places)
    turn = int(chances.argmax()) + 1
    if chances[turn - 1] < SURE:
        return _telling(places, chances)
    around = range(turn - 1, min(turn + 1, len(places)))
    return min(around, key=lambda place: places[place].tried)


def turn_probabilities(places: Sequence[Tried]) -> Floats:
    """Return how likely it is of each turn that the odds fell there, of shape (turns,).

    It is the posterior where each turn is as likely before, and the odds are the same at all places before the fall,
    and at all after it, where at most half of them are left; every such pair on a grid is as likely.
    """
    passed, tried = _arrays(places)
    return np.exp(_log_turns(passed, tried - passed))


def fixed_trials(places: Sequence[Tried], turn: int, level: float = LEVEL) -> int | None:
    """Return how many trials would have shown the same, with equally many at each place; None where 10,000 do not.

    The odds are taken to be those that were found before the turn and after it, and each place to show exactly them.
    """
    before, after = _together(places[:turn]), _together(places[turn:])
    for some in range(1, 10_000 // len(places) + 1):
        simulated = [Tried(round((before if place < turn else after) * some), some) for place in range(len(places))]
        if fall(simulated, level).turn == turn:
            return some * len(places)
    return None


def _together(places: Sequence[Tried]) -> float:
    """Return the odds of some places together, 0 where none was tried."""
    tried = sum(place.tried for place in places)
    return sum(place.passed for place in places) / tried if tried else 0.0


def _differs(places: Sequence[Tried], turn: int, level: float) -> bool:
    before = places[turn - 1]
    if turn == len(places):
        return before.passed > 0
    return fell(before, places[turn], 1 - (1 - level) / len(places))


def _telling(places: Sequence[Tried], chances: Floats) -> int:
    """Return the place where one more trial leaves the least entropy, on average over how it may end."""
    passed, tried = _arrays(places)
    one_more = np.eye(len(places))
    succeeds = _entropy(_log_turns(passed + one_more, (tried - passed)[None, :].repeat(len(places), 0)))
    fails = _entropy(_log_turns(passed[None, :].repeat(len(places), 0), tried - passed + one_more))
    odds = _expected_odds(passed, tried - passed, chances)
    return int((odds * succeeds + (1 - odds) * fails).argmin())


def _expected_odds(passed: Floats, failed: Floats, chances: Floats) -> Floats:
    """Return the expected odds of each place: those before the fall or after it, as the turn of the fall may be."""
    joint = _log_joint(passed, failed)
    weights = np.exp(joint - joint.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    before, after = chances * (weights @ _STEPS[_BEFORE]), chances * (weights @ _STEPS[_AFTER])
    later = np.cumsum(before[::-1])[::-1]
    earlier = np.concatenate([[0.0], np.cumsum(after)[:-1]])
    return later + earlier


def _log_turns(passed: Floats, failed: Floats) -> Floats:
    """Return the logarithms of the probabilities of turns, of shape (…, turns), for trials of that shape."""
    joint = _log_joint(passed, failed)
    largest = joint.max(axis=(-1, -2), keepdims=True)
    turns = np.log(np.exp(joint - largest).sum(axis=-1))
    return turns - np.log(np.exp(turns).sum(axis=-1, keepdims=True))


def _log_joint(passed: Floats, failed: Floats) -> Floats:
    """Return the likelihood of the trials for each turn of the fall and each pair of odds, of shape (…, turns, pairs).

    The fall in turn j has the places 0 to j - 1 before it.
    """
    each = passed[..., None] * _LOG + failed[..., None] * _LOG_NOT
    before = np.cumsum(each, axis=-2)
    after = before[..., -1:, :] - before
    return before[..., _BEFORE] + after[..., _AFTER]


def _entropy(log_chances: Floats) -> Floats:
    return -(np.exp(log_chances) * log_chances).sum(axis=-1)


def _arrays(places: Sequence[Tried]) -> tuple[Floats, Floats]:
    both = np.array(places, dtype=np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _log_mixture(passed: int, tried: int) -> float:
    """Return the logarithm of the mean likelihood of trials over a Beta(1/2, 1/2) distribution of their probability."""
    return _log_beta(passed + _PRIOR, tried - passed + _PRIOR) - _log_beta(_PRIOR, _PRIOR)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_likelihood(passed: int, tried: int) -> float:
    """Return the logarithm of the largest likelihood that trials have at any probability."""
    failed = tried - passed
    return sum(n * math.log(n / tried) for n in (passed, failed) if n)


def _edge(outside: float, within: float, inside: Callable[[float], bool]) -> float:
    """Return where an interval ends between a point outside of it and one in it."""
    for _ in range(60):
        middle = (outside + within) / 2
        outside, within = (outside, middle) if inside(middle) else (middle, within)
    return (outside + within) / 2
