from __future__ import annotations

from statistics import fmean
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from vivavoce.stats.two_means import Group, mean_difference

SCIPY = cast("Any", stats)


def alone(values: list[float]) -> Group:
    return Group(values, list(range(len(values))))


def test_of_independent_values_it_is_the_test_of_welch() -> None:
    draw = np.random.default_rng(1)
    one: list[float] = draw.normal(1, 2, 30).tolist()
    other: list[float] = draw.normal(0, 1, 50).tolist()
    found = mean_difference(alone(one), alone(other))
    expected: Any = SCIPY.ttest_ind(one, other, equal_var=False)
    assert found is not None
    assert found.p_value == pytest.approx(float(expected.pvalue))
    assert found.difference == pytest.approx(fmean(one) - fmean(other))
    ends: Any = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx(
        (float(ends.low), float(ends.high)), rel=0.01
    )  # whole degrees of freedom here


def test_values_that_came_of_one_sample_count_as_one() -> None:
    draw = np.random.default_rng(2)
    values = draw.normal(0, 1, 20)
    once = mean_difference(alone(values.tolist()), alone((values + 1).tolist()))
    often = mean_difference(
        Group(np.repeat(values, 5).tolist(), np.repeat(np.arange(20), 5).tolist()), alone((values + 1).tolist())
    )
    assert once is not None
    assert often is not None
    assert (often.low, often.high, often.p_value) == pytest.approx((once.low, once.high, once.p_value))


def test_shares_get_the_interval_of_shares_which_stays_within_bounds() -> None:
    found = mean_difference(alone([1.0] * 30), alone([0.0] * 30))
    assert found is not None
    assert (found.difference, found.high) == (1, 1)
    assert found.low is not None
    assert 0.8 < found.low < 1
    assert found.p_value is not None
    assert found.p_value < 1e-6


def test_values_that_never_vary_have_no_interval_but_a_p_value_where_they_differ() -> None:
    apart = mean_difference(alone([3.0] * 5), alone([5.0] * 5))
    assert apart is not None
    assert (apart.difference, apart.low, apart.high) == (-2, None, None)
    assert apart.p_value == pytest.approx(2 / 252)
    same = mean_difference(alone([3.0] * 5), alone([3.0] * 9))
    assert same is not None
    assert same.p_value == 1


def test_one_sample_says_nothing_and_none_is_no_difference() -> None:
    found = mean_difference(alone([3.0]), alone([4.0, 5.0]))
    assert found is not None
    assert (found.difference, found.low, found.p_value) == (-1.5, None, None)
    assert mean_difference(alone([]), alone([1.0])) is None
