"""Differences of groups from the rest, against published values and simulated data."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from vivavoce.stats.groups import Crossed, GroupSums, adjusted, group_differences
from vivavoce.stats.intervals import ShareSums

PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
    *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
]
"""The p values of the example of Benjamini and Hochberg (1995), of which their procedure keeps four at 0.05."""


def singles(passed: int, tries: int) -> ShareSums:
    """Return the sums of samples with one try each."""
    return ShareSums(tries, passed, tries, passed, passed, tries)


def sums(passed: np.ndarray, tries: np.ndarray) -> ShareSums:
    has = tries > 0
    p, n = passed[has], tries[has]
    return ShareSums(len(p), *(int(one.sum()) for one in (p, n, p * p, p * n, n * n)))


def test_the_published_example_keeps_four() -> None:
    found = adjusted(PUBLISHED)
    assert sum(q <= 0.05 for q in found) == 4
    assert found[3] == pytest.approx(0.0095 * 15 / 4)
    assert found == sorted(found)
    assert found[-1] == 1.0


def test_adjusted_values_stand_where_their_p_values_stood() -> None:
    turned = adjusted(PUBLISHED[::-1])
    assert turned[::-1] == adjusted(PUBLISHED)
    assert adjusted([]) == []
    assert adjusted([0.03]) == [0.03]


def test_independent_groups_have_the_published_interval() -> None:
    """R. G. Newcombe, Statistics in Medicine 17 (1998), 873-890, table II, 56/70 less 48/80, method 10."""
    (found,) = group_differences([GroupSums(singles(56, 70), singles(48, 80))])
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert found.differs


def test_the_p_value_is_where_the_interval_ends_at_zero() -> None:
    one = GroupSums(singles(30, 60), singles(60, 90))
    (found,) = group_differences([one])
    assert found is not None
    (at,) = group_differences([one], 1 - found.p_value)
    assert at is not None
    assert at.high == pytest.approx(0, abs=1e-6)
    assert not (group_differences([GroupSums(singles(5, 10), singles(5, 10))])[0] or found).differs


def test_a_side_of_one_sample_says_nothing() -> None:
    found = group_differences(
        [
            GroupSums(singles(1, 1), singles(5, 9)),
            GroupSums(singles(5, 9), singles(0, 0)),
            GroupSums(singles(9, 9), singles(2, 9)),
        ]
    )
    assert found[:2] == [None, None]
    assert found[2] is not None
    assert found[2].q_value == found[2].p_value  # the others are no tests


def test_of_many_groups_alike_few_are_said_to_differ() -> None:
    random, wrong, runs = np.random.default_rng(5), 0, 400
    for _ in range(runs):
        passed = random.binomial(25, 0.7, 8)
        groups = [GroupSums(singles(int(p), 25), singles(int(passed.sum() - p), 175)) for p in passed]
        wrong += any(one is not None and one.differs for one in group_differences(groups))
    assert wrong / runs < 0.08


def test_samples_on_both_sides_make_the_interval_narrower_and_it_holds() -> None:
    random, held, runs = np.random.default_rng(6), 0, 400
    paired: list[float] = []
    unpaired: list[float] = []
    for _ in range(runs):
        easy = random.random(60) < 0.6  # a case is easy or hard for both variants
        one = (random.random(60) < np.where(easy, 0.95, 0.25)).astype(int)
        other = (random.random(60) < np.where(easy, 0.85, 0.15)).astype(int)
        tries = np.ones(60, dtype=int)
        crossed = Crossed(int((one * other).sum()), int(one.sum()), int(other.sum()), 60)
        inside, outside = sums(one, tries), sums(other, tries)
        found = group_differences([GroupSums(inside, outside, crossed)])[0]
        apart = group_differences([GroupSums(inside, outside)])[0]
        assert found is not None
        assert apart is not None
        held += found.low <= 0.1 <= found.high
        paired.append(found.high - found.low)
        unpaired.append(apart.high - apart.low)
    assert 0.92 < held / runs < 0.99
    assert np.mean(paired) < 0.85 * np.mean(unpaired)


def test_trials_of_a_sample_are_not_counted_as_samples() -> None:
    passed = np.array([5, 5, 5, 0, 0, 5, 5, 5, 5, 0])
    tries = np.full(10, 5)
    few = group_differences([GroupSums(sums(passed[:5], tries[:5]), sums(passed[5:], tries[5:]))])[0]
    many = group_differences([GroupSums(singles(15, 25), singles(20, 25))])[0]
    assert few is not None
    assert many is not None
    assert few.high - few.low > 1.5 * (many.high - many.low)
    assert list(chain([few.difference])) == pytest.approx([many.difference])
