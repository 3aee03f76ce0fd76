from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from vivavoce.stats.bootstrap import Floats, Weights, bootstrap


def mean_of(values: Floats) -> Callable[[Weights], Floats]:
    return lambda weights: (weights @ values) / weights.sum(axis=1)


def normal(n: int) -> list[float]:
    return [NormalDist().inv_cdf((place + 0.5) / n) for place in range(n)]


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    values = np.array(normal(200))
    found = bootstrap(mean_of(values), range(200))
    assert found == pytest.approx((-1.96 / 200**0.5, 1.96 / 200**0.5), abs=0.02)


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
    assert bootstrap(lambda weights: np.ones(len(weights)), range(9)) is None, "no spread is no certainty"
    assert bootstrap(lambda weights: np.full(len(weights), np.nan), range(9)) is None
    assert bootstrap(lambda weights: np.where(weights[:, 0] > 2, weights[:, 1], np.nan), range(9)) is None, "too seldom"
