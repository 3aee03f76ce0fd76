from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from vivavoce.stats.bootstrap import Places, bootstrap


def normal(n: int) -> list[float]:
    return [NormalDist().inv_cdf((place + 0.5) / n) for place in range(n)]


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    values = np.array(normal(200))
    found = bootstrap(lambda at: float(values[at].mean()), range(200))
    assert found == pytest.approx((-1.96 / 200**0.5, 1.96 / 200**0.5), abs=0.02)


def test_values_of_one_sample_are_drawn_together_and_so_say_less() -> None:
    values = np.repeat(np.array(normal(25)), 8)
    together = bootstrap(lambda at: float(values[at].mean()), [place // 8 for place in range(200)])
    alone = bootstrap(lambda at: float(values[at].mean()), range(200))
    assert together is not None
    assert alone is not None
    assert together[1] - together[0] > 2.5 * (alone[1] - alone[0])


def test_the_same_data_have_the_same_interval_and_the_level_decides_how_wide_it_is() -> None:
    values = np.array(normal(40))

    def mean(at: Places) -> float:
        return float(values[at].mean())

    assert bootstrap(mean, range(40)) == bootstrap(mean, range(40)) != bootstrap(mean, range(40), seed=1)
    wide, narrow = bootstrap(mean, range(40)), bootstrap(mean, range(40), level=0.5)
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_where_nothing_can_be_said_there_is_no_interval() -> None:
    assert bootstrap(lambda at: float(at.sum()), ["one", "one", "one"]) is None
    assert bootstrap(lambda at: 1.0, range(9)) is None, "no spread is no certainty"
    assert bootstrap(lambda at: None, range(9)) is None
    assert bootstrap(lambda at: float(at.sum()) if at[0] == 0 else None, range(9)) is None, "exists in a ninth"
