from __future__ import annotations

from math import nan
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vivavoce.stats.bootstrap import Floats
from vivavoce.stats.ranking import auroc, aurocs, ranks, spearman, spearmans

SCIPY = cast("Any", stats)
VALUES = st.sampled_from([-1.0, 0.0, 0.5, 0.5000001, 1.0, 3.0])
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30)


@given(st.lists(VALUES, min_size=1))
def test_equal_values_share_their_mean_rank(values: list[float]) -> None:
    assert ranks(values).tolist() == SCIPY.rankdata(values).tolist()


@given(PAIRS)
def test_spearman_is_that_of_scipy_wherever_there_is_one(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert spearman(one, other) is None
    else:
        assert spearman(one, other) == pytest.approx(SCIPY.spearmanr(one, other).statistic)


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=30))
def test_the_area_is_the_share_of_pairs_in_the_right_order(pairs: list[tuple[float, bool]]) -> None:
    values, truth = [value for value, _ in pairs], [true for _, true in pairs]
    above = [value for value, true in pairs if true]
    below = [value for value, true in pairs if not true]
    if not above or not below:
        assert auroc(values, truth) is None
    else:
        expected = SCIPY.mannwhitneyu(above, below).statistic / (len(above) * len(below))
        assert auroc(values, truth) == pytest.approx(expected)


WEIGHTED = st.lists(st.tuples(VALUES, VALUES, st.booleans(), st.integers(0, 3)), min_size=1, max_size=12)


@given(WEIGHTED)
def test_a_weight_is_a_value_that_often(rows: list[tuple[float, float, bool, int]]) -> None:
    one, other, truth = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    weights = np.array([[row[3] for row in rows], [1] * len(rows)], dtype=np.float64)
    repeated = [row for row in rows for _ in range(row[3])]
    first, second, true = [row[0] for row in repeated], [row[1] for row in repeated], [row[2] for row in repeated]
    assert_same(spearmans(one, other, weights), [spearman(first, second), spearman(one, other)])
    assert_same(aurocs(one, truth, weights), [auroc(first, true), auroc(one, truth)])


def assert_same(found: Floats, expected: list[float | None]) -> None:
    assert found.tolist() == pytest.approx([nan if one is None else one for one in expected], nan_ok=True)


def test_an_order_that_is_right_is_one_and_its_opposite_the_worst() -> None:
    assert spearman([1, 2, 3], [10, 20, 90]) == pytest.approx(1)
    assert spearman([1, 2, 3], [90, 20, 10]) == pytest.approx(-1)
    assert (auroc([0.1, 0.2], [False, True]), auroc([0.1, 0.2], [True, False])) == (1, 0)
    assert auroc([0.5, 0.5], [True, False]) == 0.5
    assert spearman([1], [1]) is None


def test_both_lists_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="got 2 and 1"):
        spearman([1, 2], [1])
    with pytest.raises(ValueError, match="got 1 and 2"):
        auroc([1], [True, False])
