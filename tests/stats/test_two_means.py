from __future__ import annotations

from statistics import fmean
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from vivavoce.stats.two_means import Group, mean_difference, mean_differences

SCIPY = cast("Any", stats)


def alone(values: list[float]) -> Group:
    return Group(values, list(range(len(values))))


def test_of_independent_values_it_is_the_interval_of_welch_and_the_test_of_pitman() -> None:
    draw = np.random.default_rng(1)
    first: list[float] = draw.normal(0.8, 2, 30).tolist()
    second: list[float] = draw.normal(0, 1, 50).tolist()
    difference = mean_difference(alone(first), alone(second))
    expected: Any = SCIPY.ttest_ind(first, second, equal_var=False)
    assert difference is not None
    assert difference.difference == pytest.approx(fmean(first) - fmean(second))
    ends: Any = expected.confidence_interval()
    assert (difference.low, difference.high) == pytest.approx(
        (float(ends.low), float(ends.high)), rel=0.01
    )  # whole degrees of freedom here

    def welch(a: Any, b: Any, axis: int) -> Any:
        return SCIPY.ttest_ind(a, b, axis=axis, equal_var=False).statistic

    permuted: Any = SCIPY.permutation_test(
        (first, second),
        welch,
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(4),
    )
    assert difference.p_value == pytest.approx(float(permuted.pvalue), abs=0.005)


def test_values_that_came_of_one_sample_count_as_one() -> None:
    draw = np.random.default_rng(2)
    values = draw.normal(0, 1, 20)
    once = mean_difference(alone(values.tolist()), alone((values + 1).tolist()))
    often = mean_difference(
        Group(np.repeat(values, 5).tolist(), np.repeat(np.arange(20), 5).tolist()), alone((values + 1).tolist())
    )
    assert once is not None
    assert often is not None
    assert (often.low, often.high) == pytest.approx((once.low, once.high))
    assert often.p_value == pytest.approx(once.p_value, abs=0.01)


def test_shares_get_the_interval_of_shares_which_stays_within_bounds() -> None:
    difference = mean_difference(alone([1.0] * 30), alone([0.0] * 30), bounds=(0.0, 1.0))
    assert difference is not None
    assert (difference.difference, difference.high) == (1, 1)
    assert difference.low is not None
    assert 0.8 < difference.low < 1
    assert difference.p_value == pytest.approx(1 / 10_001)
    assert difference.excludes_zero


def test_a_side_that_does_not_vary_is_not_certain() -> None:
    """A thing that is done in 2% of 500 conversations and in none of 20: nothing to see."""
    many = [0.0] * 490 + [0.5] * 10
    for bounds in ((0.0, 1.0), (-np.inf, np.inf)):
        difference = mean_difference(alone([0.0] * 20), alone(many), bounds=bounds)
        assert difference is not None
        assert difference.p_value is not None
        assert difference.p_value > 0.5
        assert not difference.excludes_zero


def test_values_that_never_vary_have_no_interval_but_a_p_value_where_they_differ() -> None:
    apart = mean_difference(alone([3.0] * 5), alone([5.0] * 5))
    assert apart is not None
    assert (apart.difference, apart.low, apart.high) == (-2, None, None)
    assert apart.p_value == pytest.approx(2 / 252, abs=0.002)
    same = mean_difference(alone([3.0] * 5), alone([3.0] * 9))
    assert same is not None
    assert same.p_value == 1


def test_one_sample_says_nothing_and_none_is_no_difference() -> None:
    difference = mean_difference(alone([3.0]), alone([4.0, 5.0]))
    assert difference is not None
    assert (difference.difference, difference.low, difference.p_value) == (-1.5, None, None)
    assert mean_difference(alone([]), alone([1.0])) is None


def test_columns_are_compared_one_by_one_and_what_is_not_known_is_left_out() -> None:
    draw = np.random.default_rng(3)
    values = draw.random((40, 3))
    values[:15, 0], values[0, 1], values[:, 2] = values[:15, 0] + 2, np.nan, np.nan
    first, second, nothing = mean_differences(values, range(40), np.arange(40) < 15, [(-np.inf, np.inf)] * 3)
    assert first is not None
    assert second is not None
    assert nothing is None
    assert first.excludes_zero
    assert second.difference == pytest.approx(np.nanmean(values[:15, 1]) - values[15:, 1].mean())
