from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.exact.speakers import STATISTICS, Statistic, summary


@pytest.mark.parametrize(("statistic", "wanted"), [("mean", 4.0), ("median", 2.5), ("p95", 10.0), ("max", 10.0)])
def test_each_statistic_is_what_it_is_called(statistic: Statistic, wanted: float) -> None:
    assert summary([1.0, 10.0, 3.0, 2.0], statistic) == wanted


def test_the_95th_percentile_of_a_hundred_is_the_95th() -> None:
    assert summary([float(i) for i in range(1, 101)], "p95") == 95


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.sampled_from(STATISTICS))
def test_a_statistic_lies_between_the_least_and_the_most(values: list[int], statistic: Statistic) -> None:
    assert min(values) <= summary(values, statistic) <= max(values)
