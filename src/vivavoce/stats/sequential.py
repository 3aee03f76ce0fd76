"""Intervals that hold at any time: one may look after every round of trials, and stop when they are narrow enough.

A round is one trial of every sample. Which samples there are is given, as in a suite; what is estimated is the mean
over these samples of what each would score on average. Rounds are exchangeable, samples are not: an easy sample comes
back in every round. So the sum of one round is a single observation of the mean, and what counts is how far a sample
varies about its own past, not how far the samples differ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BOLDEST = 0.5
"""The largest weight of a round; the formula needs one below 1."""
_GUESS = 0.5
"""What a score is expected to be before there is any."""
_SHARED = 2.0
"""How many trials the mean of all samples counts in what a sample is expected to score."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The interval of a mean after `rounds` rounds; its chance ever to miss the mean is that of a single interval."""

    low: float
    high: float
    rounds: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def limits_of(
    samples: Sequence[str],
    trials: Sequence[int],
    values: Sequence[float],
    missing: Sequence[str] = (),
    level: float = 0.95,
) -> Limits:
    """Return the interval of the mean of scores by sample and by trial, counted from 0.

    `missing` names the sample of each trial that has no score because of an error. Only rounds in which every sample
    was tried count: what is left of a round that was broken off says more of the samples at its beginning.
    """
    tried = Counter([*samples, *missing])
    many = min(tried.values(), default=0)
    place = {sample: row for row, sample in enumerate(sorted(tried))}
    rounds: Floats = np.full((len(place), many), np.nan)
    for sample, trial, value in zip(samples, trials, values, strict=True):
        if trial < many:
            rounds[place[sample], trial] = value
    return sequence(rounds, level)


def sequence(rounds: Floats, level: float = 0.95) -> Limits:
    """Return the interval after the last of some rounds; of shape (samples, rounds), each score from 0 to 1.

    A score that is missing, NaN, counts as 0 for the lower end and as 1 for the upper one. For a score x that was
    expected to be g, both from 0 to 1, and a weight w in [0, 1), exp(w (x - g) - psi(w) (x - g)^2) is at most
    1 + w (x - g), where psi(w) = -log(1 - w) - w. Its mean is then at most exp(w (m - g)) for the mean m of that
    sample. The weight is the same for all samples of a round, so that the product over samples and rounds speaks of
    the sum of the m, and by Ville's inequality it is never above 1 / a but with chance a. That gives, with
    V_r = sum over the samples of (x - g)^2, n samples and a = (1 - level) / 2, the end
    (sum_r w_r sum x -+ (log(1 / a) + sum_r psi(w_r) V_r)) / (n sum_r w_r). The weight of a round comes from the
    rounds before; what a sample is expected to score, from them and from the samples before it in the round, so the
    order of the samples must not depend on their scores.

    Source: I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting, JRSS B 86 (2024),
    arXiv:2010.09686, theorem 2; S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon, Time-uniform, nonparametric,
    nonasymptotic confidence sequences, Annals of Statistics 49 (2021), for the inequality with expected values.

    Raises:
        ValueError: a score is below 0 or above 1, or the level is not between 0 and 1.
    """
    if rounds.ndim != 2:
        raise ValueError(f"rounds needs shape (samples, rounds); got {rounds.ndim} dimensions")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    with np.errstate(invalid="ignore"):
        if bool(((rounds < 0) | (rounds > 1)).any()):
            raise ValueError("scores of a sequence must be from 0 to 1")
    samples, many = rounds.shape
    if not samples or not many:
        return Limits(0.0, 1.0, many)
    if not np.isnan(rounds).any():
        centre, half = _ends(rounds, level)
        return Limits(max(0.0, centre - half), min(1.0, centre + half), many)
    lowest, below = _ends(np.nan_to_num(rounds, nan=0.0), level)
    highest, above = _ends(np.nan_to_num(rounds, nan=1.0), level)
    return Limits(max(0.0, lowest - below), min(1.0, highest + above), many)


def _ends(x: Floats, level: float) -> tuple[float, float]:
    """Return the middle of the interval and half its width, not cut to 0 and 1."""
    samples, many = x.shape
    before: Floats = np.cumsum(x, axis=1) - x
    trials = np.arange(many, dtype=np.float64)
    shared = ((_GUESS + np.cumsum(x.T.ravel()) - x.T.ravel()) / (1 + np.arange(x.size))).reshape(many, samples).T
    expected = (_SHARED * shared + before) / (_SHARED + trials)
    squares = ((x - expected) ** 2).sum(axis=0)
    seen = np.concatenate([[0.0], np.cumsum(squares)[:-1]])
    variance = (0.25 + seen) / (1 + samples * trials)
    chance = math.log(2 / (1 - level))
    weights = np.minimum(BOLDEST, np.sqrt(2 * chance / (variance * samples * (trials + 1))))
    psi = -np.log1p(-weights) - weights
    whole = samples * float(weights.sum())
    return float(weights @ x.sum(axis=0)) / whole, (chance + float(psi @ squares)) / whole
