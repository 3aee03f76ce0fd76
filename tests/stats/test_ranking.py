from __future__ import annotations

from math import nan
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vivavoce.stats.intervals import wilson
from vivavoce.stats.ranking import auroc, auroc_interval, ranks, separation, spearman, spearmans
from vivavoce.stats.resampling import Floats

SCIPY = cast("Any", stats)
VALUES = st.sampled_from([-1.0, 0.0, 0.5, 0.5000001, 1.0, 3.0])
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30)


@given(st.lists(VALUES, min_size=1))
def test_equal_values_share_their_mean_rank(values: list[float]) -> None:
    assert ranks(values).tolist() == SCIPY.rankdata(values).tolist()


@given(PAIRS)
def test_spearman_is_that_of_scipy_wherever_there_is_one(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert spearman(first, second) is None
    else:
        assert spearman(first, second) == pytest.approx(SCIPY.spearmanr(first, second).statistic)


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
    left, right, truth = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    weights = np.array([[row[3] for row in rows], [1] * len(rows)], dtype=np.float64)
    repeated = [row for row in rows for _ in range(row[3])]
    first, second, true = [row[0] for row in repeated], [row[1] for row in repeated], [row[2] for row in repeated]
    assert_same(spearmans(left, right, weights), [spearman(first, second), spearman(left, right)])
    assert auroc(left, truth, weights[0]) == pytest.approx(auroc(first, true))


def assert_same(results: Floats, expected: list[float | None]) -> None:
    assert results.tolist() == pytest.approx([nan if number is None else number for number in expected], nan_ok=True)


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


def test_a_known_area_has_a_known_interval() -> None:
    """Eighteen pairs in order of twenty: by DeLong's variance, computed pair by pair, and that of Hanley and McNeil."""
    values, truth = [1, 2, 3, 4, 5, 6, 7, 8, 9], [False, False, False, True, False, True, True, True, False]
    good = [value for value, true in zip(values, truth, strict=True) if true]
    bad = [value for value, true in zip(values, truth, strict=True) if not true]
    of_good = [sum(value > bad_value for bad_value in bad) / 5 for value in good]
    of_bad = [sum(value > bad_value for value in good) / 4 for bad_value in bad]
    area = sum(of_good) / 4
    assert auroc(values, truth) == pytest.approx(area) == pytest.approx(0.75)
    delong = (
        (sum((share - area) ** 2 for share in of_good) / 16 + sum((share - area) ** 2 for share in of_bad) / 25) * 9 / 8
    )
    moved = (area * 20 + 0.5) / 21
    least = moved * (1 - moved) * (1 + 3.5 * ((1 - moved) / (2 - moved) + moved / (1 + moved))) / 20
    assert delong > least
    tries = moved * (1 - moved) / delong * (1.959963984540054 / SCIPY.t.ppf(0.975, 8)) ** 2
    assert auroc_interval(values, truth, range(9)) == pytest.approx(wilson(moved * tries, tries))


def test_a_perfect_order_of_few_is_no_certainty() -> None:
    few = auroc_interval(range(10), [False] * 5 + [True] * 5, range(10))
    many = auroc_interval(range(1000), [False] * 500 + [True] * 500, range(1000))
    assert few is not None
    assert many is not None
    assert few[0] < 0.8 < 0.99 < many[0]


def test_a_sample_counts_once_however_often_it_was_tried() -> None:
    random = np.random.default_rng(2)
    truth = [place % 3 > 0 for place in range(60)]
    values = (random.normal(size=60) + truth).tolist()
    ends = [
        auroc_interval(values, truth, range(60)),
        auroc_interval(values * 3, truth * 3, [*range(60)] * 3),
        auroc_interval(values * 3, truth * 3, range(180)),
    ]
    once, together, apart = (high - low for low, high in filter(None, ends))
    assert together == pytest.approx(once, rel=0.02)
    assert apart < 0.65 * once


@pytest.mark.parametrize(("truth", "clusters"), [([True] * 3, "abc"), ([True, False, True], "aaa")])
def test_without_both_sides_or_several_samples_there_is_no_interval(truth: list[bool], clusters: str) -> None:
    assert auroc_interval([1, 2, 3], truth, clusters) is None


def test_a_larger_variance_widens_the_interval_and_leaves_its_middle() -> None:
    values, truth = list(range(100)), [place % 3 != 0 for place in range(100)]
    clusters = list(range(100))
    narrow, wide = (auroc_interval(values, truth, clusters, inflation=factor) for factor in (1.0, 2.0))
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert wide[1] - wide[0] == pytest.approx(2**0.5 * (narrow[1] - narrow[0]), rel=0.05)


def test_separation_is_the_mean_area_on_the_side_with_more() -> None:
    truth = [True] * 4 + [False] * 4
    higher, lower = np.array([5.0, 6, 7, 8, 1, 2, 3, 4]), np.array([1.0, 2, 3, 4, 5, 6, 7, nan])
    alike, missing = np.array([1.0, 2, 3, 4, 1, 2, 3, 4]), np.full(8, nan)
    result = separation([higher, lower, alike, missing], truth, list(range(8)))
    assert result is not None
    assert result.mean == pytest.approx((1 + 1 + 0.5) / 3)
    assert separation([missing], truth, list(range(8))) is None
    single = separation([alike], truth, [0] * 8)
    assert single is not None
    assert (single.low, single.high) == (None, None)


def test_the_interval_of_a_separation_is_that_of_its_only_area() -> None:
    draw = np.random.default_rng(5)
    values, truth = draw.normal(size=400) + np.repeat([1.0, 0.0], 200), np.repeat([True, False], 200)
    result, interval = separation([values], truth, list(range(400))), auroc_interval(values, truth, list(range(400)))
    assert result is not None
    assert interval is not None
    assert (result.low, result.high) == pytest.approx(interval, abs=0.01)
