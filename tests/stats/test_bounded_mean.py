"""The interval of a bounded mean: exact cases, monotony, agreement with its p value, and how often it holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce.stats.bounded_mean import MAX_DISTINCT, bounded_mean
from vivavoce.stats.paired import sign_test

SCALE = (-1.0, 1.0)
CHANGE = st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.floats(-1, 1, width=32))


def tail(successes: int, n: int, rate: float) -> float:
    """The binomial probability of at least this many successes."""
    return math.fsum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(successes, n + 1))


@pytest.mark.parametrize(("successes", "n"), [(1, 1), (1, 2), (3, 10), (5, 5), (9, 10), (50, 100)])
def test_of_passes_it_is_the_interval_of_clopper_and_pearson(successes: int, n: int) -> None:
    interval = bounded_mean([1.0] * successes + [0.0] * (n - successes), (0.0, 1.0))
    assert tail(successes, n, interval.low) == pytest.approx(0.025, rel=1e-8)
    assert 1 - tail(successes + 1, n, interval.high) == pytest.approx(0.025 if successes < n else 1.0, rel=1e-8)


@pytest.mark.parametrize(("wins", "losses", "ties"), [(0, 1, 0), (0, 6, 0), (1, 8, 3), (4, 9, 30), (20, 40, 900)])
def test_the_p_value_of_flips_is_that_of_mcnemars_exact_test(wins: int, losses: int, ties: int) -> None:
    changes = [1.0] * wins + [-1.0] * losses + [0.0] * ties
    assert bounded_mean(changes, SCALE).p_value == pytest.approx(sign_test(wins, losses), rel=1e-9)


def test_the_ends_are_quantiles_of_random_weights() -> None:
    random = np.random.default_rng(11)
    values = random.normal(0.1, 0.3, 15).clip(-1, 1)
    weights = random.dirichlet(np.ones(16), 200_000)
    interval = bounded_mean(values.tolist(), SCALE)
    assert interval.high == pytest.approx(np.quantile(weights @ np.append(values, 1.0), 0.975), abs=0.003)
    assert interval.low == pytest.approx(np.quantile(weights @ np.append(values, -1.0), 0.025), abs=0.003)


@given(st.lists(st.tuples(CHANGE, CHANGE), min_size=1, max_size=25))
@settings(deadline=None)
def test_a_higher_value_lowers_no_end(pairs: list[tuple[float, float]]) -> None:
    lower = bounded_mean([min(pair) for pair in pairs], SCALE)
    higher = bounded_mean([max(pair) for pair in pairs], SCALE)
    assert lower.low <= higher.low + 1e-8
    assert lower.high <= higher.high + 1e-8


@given(st.lists(CHANGE, min_size=1, max_size=25), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None)
def test_the_p_value_is_small_exactly_where_the_interval_excludes_the_null(values: list[float], level: float) -> None:
    interval = bounded_mean(values, SCALE, level)
    assert (interval.p_value <= 1 - level) == (interval.low > 0 or interval.high < 0)
    mirrored = bounded_mean([-value for value in values], SCALE, level)
    assert (-mirrored.high, -mirrored.low) == pytest.approx((interval.low, interval.high), abs=1e-8)
    assert mirrored.p_value == pytest.approx(interval.p_value)


def test_near_ties_are_no_more_certain_than_ties() -> None:
    alike = bounded_mean([0.3, 0.3, 0.3], SCALE)
    assert alike.low < 0 < alike.high
    for step in (1e-12, 1e-6, 0.001):
        near = bounded_mean([0.3, 0.3, 0.3 + step], SCALE)
        assert (near.low, near.high) == pytest.approx((alike.low, alike.high), abs=2 * step + 1e-8)


@pytest.mark.parametrize("n", [6, 20, 50])
@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_a_rare_large_gain_makes_no_false_loss(n: int, share: float) -> None:
    """Few samples gain a lot, the others lose a little, and the true mean is 0."""
    random = np.random.default_rng(3)
    gains = random.binomial(n, share, 1000)
    loss = -0.9 * share / (1 - share)
    worse = {
        int(gain): bounded_mean([0.9] * int(gain) + [loss] * int(n - gain), SCALE).high < 0 for gain in np.unique(gains)
    }
    assert np.mean([worse[int(gain)] for gain in gains]) <= 0.03


def test_very_many_distinct_values_are_averaged_without_a_visible_change() -> None:
    values = np.random.default_rng(2).uniform(-0.5, 0.6, 2 * MAX_DISTINCT)
    interval, coarse = (bounded_mean(each.tolist(), SCALE) for each in (values, values.round(3)))
    assert (interval.low, interval.high) == pytest.approx((coarse.low, coarse.high), abs=2e-5)


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [1.2], [-1.2]])
def test_what_has_no_bounded_mean_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="each between"):
        bounded_mean(values, SCALE)


def test_bounds_must_be_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        bounded_mean([0.0], (0.0, math.inf))
