from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vivavoce.stats.ranking import auroc, ranks, spearman

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
