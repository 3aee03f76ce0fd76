"""Drawing some of many: how many from each stratum, how likely each one is, and which ones.

What is drawn depends on the seed alone: numpy keeps the numbers of its `RandomState` as they are for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


FEWEST = 2
"""Drawn from each stratum at least: one says nothing of how its values differ."""
SAME_FOR_ALL = 0.25
"""The part of the probability that is the same for all, so that no weight is above four times the mean."""


def allocation(sizes: Sequence[int], size: int) -> list[int]:
    """Return how many of `size` to draw from strata of these sizes: in proportion, and at least `FEWEST` of each.

    A stratum with fewer is drawn whole. There have to be as many in all as are to be drawn, and enough to draw for the
    least of each stratum.

    Raises:
        ValueError: there are fewer, or so few are to be drawn that a stratum would have too few.
    """
    fewest = FEWEST if len(sizes) > 1 else 1
    least = [min(fewest, one) for one in sizes]
    whole = sum(sizes)
    if not sum(least) <= size <= whole:
        raise ValueError(f"between {sum(least)} and {whole} can be drawn, not {size}")
    wanted = [size * one / whole for one in sizes]
    found = [min(one, max(few, int(share))) for one, few, share in zip(sizes, least, wanted, strict=True)]
    places = range(len(sizes))
    while (left := size - sum(found)) != 0:
        step = 1 if left > 0 else -1
        open_ = [at for at in places if (found[at] < sizes[at] if step > 0 else found[at] > least[at])]
        first = max(open_, key=lambda at: step * (wanted[at] - found[at]))
        found[first] += step
    return found


def with_floor(values: ArrayLike) -> Floats:
    """Return how often each is drawn on average over all, by values of at least 0; those that are not known count 1.

    A quarter of the probability is the same for all, the rest is in proportion to the values.

    Source: T. Hesterberg, Weighted Average Importance Sampling and Defensive Mixture Distributions, Technometrics 37
    (1995).
    """
    found = np.array(values, dtype=np.float64)
    known = ~np.isnan(found)
    mean = float(found[known].mean()) if known.any() else 0.0
    found = found / mean if mean > 0 else np.ones(len(found))
    found[~known] = 1.0
    return SAME_FOR_ALL + (1 - SAME_FOR_ALL) * found


def inclusion(weights: ArrayLike, size: int) -> Floats:
    """Return how likely each is among `size`, in proportion to weights above 0 but never above 1.

    There have to be at least as many as are drawn.
    """
    shares = np.asarray(weights, dtype=np.float64)
    chances = size * shares / shares.sum()
    while (chances > 1).any():
        certain = chances >= 1
        rest = float(chances[~certain].sum())
        chances = np.where(certain, 1.0, chances * ((size - certain.sum()) / rest if rest else 1.0))
    return chances


def systematic(chances: Floats, random: np.random.RandomState) -> Places:
    """Return the places of those that are drawn, each as likely as it says; their number is the sum of the chances.

    The order is random, so that nearly every pair can be drawn together. Where all are as likely, the first of that
    order are drawn: then who draws more with the same numbers draws the same ones, and others.

    Source: W. G. Madow, On the Theory of Systematic Sampling, II, Annals of Mathematical Statistics 20 (1949).
    """
    order = random.permutation(len(chances))
    size, start = round(float(chances.sum())), float(random.random_sample())
    if (chances == chances[0]).all():
        return np.sort(order[:size])
    reached = np.cumsum(chances[order])
    reached[-1] = size
    found = np.searchsorted(reached, start + np.arange(size), side="right")
    return np.sort(order[found])
