"""The sign-flip test of paired differences: exact for few sums, and never too low beyond."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.paired import worse_sign_test
from vivavoce.stats.resampling import Floats, Weights, bootstrap, sign_flip_p_value


def mean_of(values: Floats) -> Callable[[Weights], Floats]:
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def normal(n: int) -> list[float]:
    return [NormalDist().inv_cdf((place + 0.5) / n) for place in range(n)]


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    values = np.array(normal(200))
    interval = bootstrap(mean_of(values), range(200))
    assert interval == pytest.approx((-1.96 / 200**0.5, 1.96 / 200**0.5), abs=0.02)


def test_values_of_one_sample_are_drawn_together_and_so_say_less() -> None:
    values = np.repeat(np.array(normal(25)), 8)
    together = bootstrap(mean_of(values), [place // 8 for place in range(200)])
    alone = bootstrap(mean_of(values), range(200))
    assert together is not None
    assert alone is not None
    assert together[1] - together[0] > 2.5 * (alone[1] - alone[0])


def test_the_same_data_have_the_same_interval_and_the_level_decides_how_wide_it_is() -> None:
    mean = mean_of(np.array(normal(40)))
    assert bootstrap(mean, range(40)) == bootstrap(mean, range(40)) != bootstrap(mean, range(40), seed=1)
    wide, narrow = bootstrap(mean, range(40)), bootstrap(mean, range(40), level=0.5)
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_where_nothing_can_be_said_there_is_no_interval() -> None:
    assert bootstrap(lambda weights: weights[:, 0], ["one", "one", "one"]) is None
    assert bootstrap(lambda weights: np.ones(len(weights)), range(9)) is None, "no spread is not a certainty"
    assert bootstrap(lambda weights: np.full(len(weights), np.nan), range(9)) is None
    assert bootstrap(lambda weights: np.where(weights[:, 0] > 2, weights[:, 1], np.nan), range(9)) is None, "too seldom"


DIFFERENCES = st.lists(st.sampled_from([-1.0, -2 / 3, -0.3, -0.1, 0.0, 0.1, 0.2, 1 / 3, 1.0]), min_size=1, max_size=10)


@given(DIFFERENCES)
def test_it_counts_the_signs_that_give_a_sum_as_low(differences: list[float]) -> None:
    signs = list(product([-1, 1], repeat=len(differences)))
    sums = [sum(sign * abs(each) for sign, each in zip(row, differences, strict=True)) for row in signs]
    expected = np.mean([each <= sum(differences) + 1e-7 for each in sums])
    assert sign_flip_p_value(differences) == pytest.approx(expected)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_of_flips_it_is_mcnemars_test(wins: int, losses: int, ties: int) -> None:
    differences = [1.0] * wins + [-1.0] * losses + [0.0] * (ties + 1)
    assert sign_flip_p_value(differences) == pytest.approx(worse_sign_test(wins, losses))


def test_equal_losses_of_all_are_as_likely_as_all_coins_heads() -> None:
    assert sign_flip_p_value([-0.3] * 14) == pytest.approx(2**-14)
    assert sign_flip_p_value([-0.02] * 2_000) < 1e-300


@pytest.mark.parametrize("shift", [-0.3, 0.0, 0.3])
def test_beyond_the_exact_sums_it_draws_and_stays_near_the_normal_limit(shift: float) -> None:
    values = np.random.default_rng(3).normal(0.0, 0.1, 200)
    values += 0.1 * shift - values.mean()
    p_value = sign_flip_p_value(values.tolist())
    assert p_value == sign_flip_p_value(values.tolist()), "the seed is fixed"
    z = values.sum() / np.sqrt((values**2).sum())
    normal = {-0.3: 0.00002, 0.0: 0.5, 0.3: 0.99998}[shift]
    assert abs(z) < 5
    assert p_value == pytest.approx(normal, abs=0.02)
    assert p_value >= 1 / 10_000


def test_alike_sides_have_a_low_p_value_seldom() -> None:
    random = np.random.default_rng(7)
    p_values = [sign_flip_p_value(random.normal(0.0, 0.2, 12).clip(-1, 1).tolist()) for _ in range(1000)]
    assert np.mean(np.array(p_values) <= 0.025) <= 0.025 + 2 * 0.005
