"""Intervals that hold at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vivavoce.stats.sequential import Limits, limits_of, sequence


def test_one_round_by_hand() -> None:
    limits = sequence(np.array([[1.0], [0.0]]))
    # the first sample is expected to score 1/2, the second (1/2 + 1) / 2: squares 1/4 and 9/16
    weight = 0.5  # sqrt(2 log 40 / (2 / 4)) is bolder than the boldest
    psi = -math.log(1 - weight) - weight
    half = (math.log(40) + psi * (1 / 4 + 9 / 16)) / (2 * weight)
    assert half > 0.5
    assert limits == Limits(0.0, 1.0, 1)
    many = sequence(np.tile([[1.0], [0.0]], (40, 1)))
    assert 0 < many.low < 0.5 < many.high < 1
    assert many.half_width == pytest.approx((many.high - many.low) / 2)


def test_more_rounds_make_it_narrower_and_so_do_samples_that_never_vary() -> None:
    steady = np.repeat([[1.0], [0.0]], 10, axis=0).repeat(20, axis=1)
    widths = [sequence(steady[:, :many]).half_width for many in (2, 5, 10, 20)]
    assert widths == sorted(widths, reverse=True)
    random = np.random.default_rng(3)
    coin = (random.random((20, 20)) < 0.5).astype(float)
    assert sequence(steady).half_width < sequence(coin).half_width


def test_what_is_missing_could_have_been_anything() -> None:
    whole = (np.random.default_rng(5).random((20, 10)) < 0.7).astype(float)
    holes = whole.copy()
    holes[3, 2:6] = math.nan
    lowest, highest = (sequence(np.where(np.isnan(holes), end, holes)) for end in (0.0, 1.0))
    assert sequence(holes) == Limits(lowest.low, highest.high, 10)
    assert sequence(holes).half_width > sequence(whole).half_width


def test_only_rounds_of_every_sample_count_and_their_order_of_arrival_does_not() -> None:
    keys = [(sample, trial) for sample in "abcd" for trial in range(6)]
    values = {key: float((ord(key[0]) + key[1]) % 3 == 0) for key in keys}
    rounds = np.array([[values[sample, trial] for trial in range(6)] for sample in "abcd"])

    def of(keys: list[tuple[str, int]], missing: tuple[str, ...] = ()) -> Limits:
        samples, trials = [key for key, _ in keys], [key for _, key in keys]
        return limits_of(samples, trials, [values[key] for key in keys], missing)

    assert of(keys) == of(keys[::-1]) == sequence(rounds)
    assert of([key for key in keys if key != ("c", 5)]) == sequence(rounds[:, :5])
    rounds[2, 5] = math.nan
    assert of([key for key in keys if key != ("c", 5)], missing=("c",)) == sequence(rounds)


@pytest.mark.parametrize(("a", "b"), [(9.0, 1.0), (0.5, 0.5), (1000.0, 1000.0)])
def test_it_misses_the_mean_at_any_time_no_more_often_than_stated(a: float, b: float) -> None:
    random, missed, sets = np.random.default_rng(7), 0, 200
    for _ in range(sets):
        chances = random.beta(a, b, 10)
        rounds = (random.random((10, 25)) < chances[:, None]).astype(float)
        each = [sequence(rounds[:, :many]) for many in range(1, 26)]
        missed += not all(limits.low <= chances.mean() <= limits.high for limits in each)
    assert missed <= 0.05 * sets


@pytest.mark.parametrize("score", [-0.1, 1.1])
def test_scores_are_from_0_to_1(score: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        sequence(np.array([[score]]))


def test_nothing_says_nothing() -> None:
    assert sequence(np.zeros((0, 0))) == Limits(0.0, 1.0, 0)
    assert limits_of([], [], []) == Limits(0.0, 1.0, 0)
