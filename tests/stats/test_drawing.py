"""Drawing some of many: as many as are wanted of each stratum, each as likely as it should be."""

from __future__ import annotations

import numpy as np
import pytest

from vivavoce.stats.sampled import SAME_FOR_ALL, allocation, inclusion, systematic, with_floor


@pytest.mark.parametrize(
    ("sizes", "size", "expected"),
    [
        ([500, 300, 200], 100, [50, 30, 20]),
        ([997, 2, 1], 100, [97, 2, 1]),
        ([10, 10, 10], 10, [4, 3, 3]),
        ([5], 5, [5]),
        ([90, 5, 5], 6, [2, 2, 2]),
    ],
)
def test_an_allocation_is_in_proportion_with_two_of_each_that_has_two(
    sizes: list[int], size: int, expected: list[int]
) -> None:
    assert allocation(sizes, size) == expected


@pytest.mark.parametrize("size", [0, 3, 11])
def test_what_cannot_be_drawn_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="between 4 and 10 can be drawn"):
        allocation([5, 5], size)


def test_nothing_has_a_weight_of_zero_and_what_is_not_known_counts_as_the_mean() -> None:
    chances = with_floor([0.0, 3.0, float("nan"), 0.0])
    assert chances == pytest.approx([SAME_FOR_ALL, SAME_FOR_ALL + 0.75 * 3, 1.0, SAME_FOR_ALL])
    assert with_floor([0.0, 0.0]).tolist() == [1.0, 1.0]
    assert with_floor([float("nan")]).tolist() == [1.0]


def test_nothing_is_likelier_than_certain_and_the_rest_share_what_is_left() -> None:
    chances = inclusion([100.0, 1.0, 1.0, 2.0], 2)
    assert chances == pytest.approx([1.0, 0.25, 0.25, 0.5])
    assert inclusion([1.0, 1.0], 2).tolist() == [1.0, 1.0]


def test_each_is_drawn_as_often_as_it_is_likely() -> None:
    chances, random = inclusion([8.0, 1.0, 1.0, 2.0, 4.0, 3.0], 3), np.random.RandomState(5)
    counts = np.zeros(6)
    for _ in range(4000):
        places = systematic(chances, random)
        assert len(set(places.tolist())) == 3
        counts[places] += 1
    assert counts / 4000 == pytest.approx(chances, abs=0.025)


def test_the_same_seed_draws_the_same() -> None:
    chances = inclusion(np.arange(1, 50), 7)
    first, second = (systematic(chances, np.random.RandomState(3)).tolist() for _ in range(2))
    assert first == second
    assert first == [21, 22, 25, 32, 34, 44, 46]
