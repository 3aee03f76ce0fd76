from __future__ import annotations

import pytest
from scipy.special import stdtrit  # pyright: ignore[reportUnknownVariableType]

from vivavoce.stats.intervals import t_quantile


@pytest.mark.parametrize("probability", [0.5, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995])
def test_quantiles_are_those_of_scipy(probability: float) -> None:
    for freedom in (*range(1, 60), 99, 100, 500, 998, 999, 1_000, 1_001, 5_000, 100_000):
        assert t_quantile(probability, freedom) == pytest.approx(float(stdtrit(freedom, probability)), rel=1e-12)


def test_quantiles_are_those_of_a_printed_table() -> None:
    # R. A. Fisher and F. Yates, Statistical Tables, table III
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}
    assert {freedom: round(t_quantile(0.975, freedom), 3) for freedom in table} == table


@pytest.mark.parametrize(("probability", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_what_has_no_quantile_is_refused(probability: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="Student's t needs"):
        t_quantile(probability, freedom)
