"""Differences of groups from the rest, against published values and simulated data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from vivavoce.stats.groups import Cell, GroupDifference, Sample, adjust_p_values, group_differences
from vivavoce.stats.intervals import mean_interval

PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
    *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
]
"""The p values of the example of Benjamini and Hochberg (1995); their procedure keeps four at 0.05."""


def alone(**groups: tuple[int, int]) -> Counter[Sample]:
    """Return samples with one try each: how many of each group passed, and how many there are."""
    samples: Counter[Sample] = Counter()
    for name, (passed, tries) in groups.items():
        samples[(Cell(frozenset({name}), 1, 1),)] += passed
        samples[(Cell(frozenset({name}), 0, 1),)] += tries - passed
    return samples


def trials(groups: Sequence[Sequence[int]], tries: int) -> Counter[Sample]:
    """Return samples that are each in one group, with the passes of each."""
    return Counter(
        (Cell(frozenset({str(number)}), int(passed), tries),) for number, group in enumerate(groups) for passed in group
    )


def differing(samples: Counter[Sample]) -> list[str]:
    return [
        name for name, difference in group_differences(samples).items() if difference is not None and difference.differs
    ]


def of(samples: Counter[Sample], name: str) -> GroupDifference:
    difference = group_differences(samples)[name]
    assert difference is not None
    return difference


def test_the_published_example_keeps_four() -> None:
    q_values = adjust_p_values(PUBLISHED)
    assert sum(q <= 0.05 for q in q_values) == 4
    assert q_values[3] == pytest.approx(0.0095 * 15 / 4)
    assert q_values == sorted(q_values)
    assert q_values[-1] == 1.0


def test_adjusted_values_stand_where_their_p_values_stood() -> None:
    turned = adjust_p_values(PUBLISHED[::-1])
    assert turned[::-1] == adjust_p_values(PUBLISHED)
    assert adjust_p_values([]) == []
    assert adjust_p_values([0.03]) == [0.03]


def test_independent_groups_have_the_published_interval() -> None:
    """R. G. Newcombe, Statistics in Medicine 17 (1998), 873-890, table II, 56/70 less 48/80, method 10."""
    difference = of(alone(one=(56, 70), other=(48, 80)), "one")
    assert (difference.difference, difference.low, difference.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert difference.differs


def test_the_p_value_is_that_of_fisher() -> None:
    """R. A. Fisher, The Design of Experiments (1935): the lady tasting tea, 3 of 4 cups right: p 34/70."""
    assert of(alone(tea=(3, 4), milk=(1, 4)), "tea").p_value == pytest.approx(34 / 70)
    assert of(alone(tea=(4, 4), milk=(0, 4)), "tea").p_value == pytest.approx(2 / 70)
    assert of(alone(inside=(3, 5), outside=(478, 495)), "inside").p_value == pytest.approx(0.0128, abs=5e-5)


def test_the_interval_excludes_zero_only_where_the_p_value_says_so() -> None:
    for passed in range(11):
        difference = of(alone(one=(passed, 10), other=(45, 50)), "one")
        assert difference.low <= difference.difference <= difference.high
        if difference.p_value > 0.05:
            assert difference.low <= 0 <= difference.high
        assert not difference.differs or not difference.low <= 0 <= difference.high


def test_a_bad_group_is_named_and_the_good_ones_are_not() -> None:
    samples = alone(tr=(12, 40), de=(35, 40), en=(37, 40))
    assert differing(samples) == ["tr"]
    differences = group_differences(samples)
    assert differences["tr"] is not None
    assert differences["de"] is not None
    assert differences["tr"].difference == pytest.approx(12 / 40 - 72 / 80)
    assert differences["de"].difference == pytest.approx(
        35 / 40 - 37 / 40
    )  # tr is not one of the others that are alike


def test_two_groups_differ_from_each_other() -> None:
    assert differing(alone(one=(10, 40), other=(38, 40))) == ["one", "other"]


def test_of_two_bad_groups_both_are_named() -> None:
    assert differing(alone(a=(10, 40), b=(12, 40), c=(38, 40), d=(37, 40), e=(39, 40))) == ["a", "b"]


@pytest.mark.parametrize("passed", [0, 1])
def test_where_all_are_equal_none_differs(passed: int) -> None:
    samples = alone(a=(4 * passed, 4), b=(4 * passed, 4), c=(9 * passed, 9))
    assert differing(samples) == []
    difference = of(samples, "a")
    assert (difference.difference, difference.p_value) == (0, 1)
    assert difference.low < 0 < difference.high


def test_a_side_of_one_sample_says_nothing() -> None:
    differences = group_differences(alone(one=(1, 1), other=(5, 9)))
    assert differences == {"one": None, "other": None}
    assert group_differences(alone(one=(5, 9))) == {"one": None}
    assert group_differences({}) == {}


def test_only_the_named_groups_are_tested() -> None:
    samples = alone(a=(10, 40), b=(38, 40), c=(39, 40))
    assert list(group_differences(samples, among=["a"])) == ["a"]


def test_samples_on_both_sides_make_the_interval_narrower_and_it_holds() -> None:
    random, hits, runs = np.random.default_rng(6), 0, 300
    paired: list[float] = []
    unpaired: list[float] = []
    for _ in range(runs):
        easy = random.random(60) < 0.6  # a case is easy or hard for both variants
        first = (random.random(60) < np.where(easy, 0.95, 0.25)).astype(int).tolist()
        second = (random.random(60) < np.where(easy, 0.85, 0.15)).astype(int).tolist()
        cases: Counter[Sample] = Counter(
            (Cell(frozenset({"one"}), p, 1), Cell(frozenset({"other"}), q, 1))
            for p, q in zip(first, second, strict=True)
        )
        difference, apart = of(cases, "one"), of(alone(one=(sum(first), 60), other=(sum(second), 60)), "one")
        hits += difference.low <= 0.1 <= difference.high
        paired.append(difference.high - difference.low)
        unpaired.append(apart.high - apart.low)
    assert 0.92 < hits / runs <= 0.99
    assert np.mean(paired) < 0.85 * np.mean(unpaired)


def test_pairs_are_exchanged_within_the_case() -> None:
    """Ten cases; nine fail under one name only: the sign test gives 20/1024, and one pair that ties nothing."""
    first, second = frozenset({"one"}), frozenset({"other"})
    cases: Counter[Sample] = Counter(
        {(Cell(first, 0, 1), Cell(second, 1, 1)): 9, (Cell(first, 1, 1), Cell(second, 0, 1)): 1}
    )
    cases[Cell(first, 1, 1), Cell(second, 1, 1)] += 5
    assert of(cases, "one").p_value == pytest.approx(22 / 1024, abs=0.004)


def test_trials_of_a_sample_are_not_counted_as_samples() -> None:
    few = of(trials([[5, 5, 5, 0, 0], [5, 5, 5, 5, 0]], 5), "0")
    many = of(alone(one=(15, 25), other=(20, 25)), "one")
    assert few.high - few.low > 1.5 * (many.high - many.low)
    assert few.difference == pytest.approx(many.difference)


def test_a_rate_has_the_interval_of_every_mean() -> None:
    samples = [[3, 2, 3, 3], [1, 0, 3, 2]]
    difference = of(trials(samples, 3), "0")
    first = mean_interval(
        [float(n < passed) for passed in samples[0] for n in range(3)], [n for n in range(4) for _ in range(3)]
    )
    assert first is not None
    assert difference.difference == pytest.approx(first.mean - 6 / 12)
