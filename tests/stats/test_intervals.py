from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.intervals import Estimate, ShareSums, mean_interval, percentile, share_interval, wilson

SCORES = st.floats(0, 1)
ANYWHERE = (-math.inf, math.inf)


def limits(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_no_values_have_no_mean() -> None:
    assert mean_interval([]) is None


@pytest.mark.parametrize(("values", "clusters"), [([0.5], None), ([1.0, 0.0, 1.0], ["a", "a", "a"])])
def test_one_cluster_has_a_mean_and_no_interval(values: list[float], clusters: list[str] | None) -> None:
    estimate = mean_interval(values, clusters)
    assert estimate == Estimate(sum(values) / len(values), None, None, len(values), 1)


def test_single_values_get_the_textbook_t_interval() -> None:
    # mean 0.5, s = 0.158114, s / sqrt(5) = 0.0707107, t(4, 0.975) = 2.776445
    assert limits(mean_interval([0.3, 0.4, 0.5, 0.6, 0.7])) == pytest.approx((0.303676, 0.696324), abs=1e-6)


def test_values_of_one_cluster_are_not_independent() -> None:
    # residual sums -0.4, 0.1, 0.3: error = sqrt(3/2 * 0.26) / 6 = 0.104083, t(2, 0.975) = 4.302653
    values, clusters = [0.2, 0.4, 0.5, 0.6, 0.6, 0.7], [1, 1, 2, 2, 3, 3]
    estimate = mean_interval(values, clusters)
    assert limits(estimate) == pytest.approx((0.5 - 0.447834, 0.5 + 0.447834), abs=1e-6)
    assert estimate is not None
    assert (estimate.n, estimate.clusters) == (6, 3)


@given(st.lists(SCORES, min_size=2, max_size=20), st.integers(2, 4))
def test_repeating_every_value_inside_its_cluster_adds_no_certainty(values: list[float], times: int) -> None:
    inner = [0.25 + value / 2 for value in values]
    repeated = mean_interval(inner * times, list(range(len(inner))) * times)
    assert limits(repeated) == pytest.approx(limits(mean_interval(inner)), abs=1e-6)


@given(st.lists(st.tuples(SCORES, st.integers(0, 5)), min_size=1))
def test_the_interval_holds_the_mean_and_stays_within_the_bounds(pairs: list[tuple[float, int]]) -> None:
    estimate = mean_interval([value for value, _ in pairs], [cluster for _, cluster in pairs])
    assert estimate is not None
    if estimate.clusters > 1:
        low, high = limits(estimate)
        assert 0 <= low <= estimate.mean + 1e-12
        assert estimate.mean - 1e-12 <= high <= 1
        if len({value for value, _ in pairs}) == 1:
            assert high - low > 1e-4, "agreement of a few is not certainty"


def test_passes_and_failures_get_wilsons_interval() -> None:
    assert limits(mean_interval([1, 1, 1, 1, 1, 1, 1, 0, 0, 0])) == wilson(7, 10)


@pytest.mark.parametrize("outcome", [0, 1])
def test_five_of_five_is_no_certainty(outcome: int) -> None:
    assert limits(mean_interval([outcome] * 5)) == pytest.approx(wilson(5 * outcome, 5))


def test_unanimous_clusters_count_once_however_many_values_they_hold() -> None:
    assert limits(mean_interval([1] * 20, [place // 4 for place in range(20)])) == pytest.approx(wilson(5, 5))


@pytest.mark.parametrize(
    ("values", "clusters"), [([0.7] * 5, [0, 1, 2, 3, 4]), ([0.5, 0.9] * 5, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])]
)
def test_clusters_that_agree_on_a_number_may_still_be_contradicted(values: list[float], clusters: list[int]) -> None:
    rare = wilson(0, 5)[1]
    expected = (0.7 - rare * 0.7, 0.7 + rare * 0.3)
    assert limits(mean_interval(values, clusters)) == pytest.approx(expected)


def test_without_bounds_equal_values_give_no_interval() -> None:
    assert mean_interval([3.0, 3.0, 3.0], bounds=ANYWHERE) == Estimate(3.0, None, None, 3, 3)


def test_bounds_can_be_any_range() -> None:
    assert limits(mean_interval([-1, 1, 1], bounds=(-1, 1)))[1] == pytest.approx(2 * wilson(2, 3)[1] - 1)
    low, high = limits(mean_interval([100.0, 300.0], bounds=ANYWHERE))
    assert low < 0 < 400 < high


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    draw = random.Random(7)
    covered = 0
    for _ in range(1000):
        chances = [draw.betavariate(3, 2) for _ in range(30)]
        values = [float(draw.random() < chance) for chance in chances for _ in range(4)]
        low, high = limits(mean_interval(values, [place // 4 for place in range(120)]))
        covered += low <= 0.6 <= high
    assert 930 <= covered <= 970


@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, math.inf])
def test_a_value_outside_the_bounds_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"value 1 must be a number between 0\.0 and 1\.0"):
        mean_interval([0.5, value])


def test_clusters_must_match_the_values() -> None:
    with pytest.raises(ValueError, match="shorter"):
        mean_interval([0.5, 0.5], ["a"])


@pytest.mark.parametrize(
    ("successes", "n", "expected"),
    [(0, 10, (0.0, 0.2775)), (5, 10, (0.2366, 0.7634)), (10, 10, (0.7225, 1.0)), (81, 263, (0.2553, 0.3662))],
)
def test_wilsons_interval_has_its_published_values(successes: int, n: int, expected: tuple[float, float]) -> None:
    assert wilson(successes, n) == pytest.approx(expected, abs=1e-4)


@given(st.integers(1, 1000))
def test_wilsons_interval_ends_exactly_at_zero_and_one(n: int) -> None:
    assert (wilson(0, n)[0], wilson(n, n)[1]) == (0, 1)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 2)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of {n}"):
        wilson(successes, n)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 100))
def test_a_percentile_is_that_of_numpy(values: list[float], q: float) -> None:
    assert percentile(values, q) == pytest.approx(float(np.percentile(values, q)), abs=1e-6)


def test_a_percentile_of_nothing_is_none() -> None:
    assert percentile([], 50) is None


def test_a_percentile_beyond_100_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 100, got 101"):
        percentile([1.0], 101)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=40))
def test_sums_of_a_database_give_the_interval_of_the_values(pairs: list[tuple[int, int]]) -> None:
    sums = ShareSums(0, 0, 0, 0, 0, 0)
    for cluster in {cluster for _, cluster in pairs}:
        p = sum(value for value, of in pairs if of == cluster)
        n = sum(of == cluster for _, of in pairs)
        sums += ShareSums(1, p, n, p * p, p * n, n * n)
    told, found = share_interval(sums), mean_interval([float(value) for value, _ in pairs], [of for _, of in pairs])
    assert told is not None
    assert found is not None
    assert (told.mean, told.n, told.clusters) == pytest.approx((found.mean, found.n, found.clusters))
    assert (told.low is None) == (found.low is None)
    if told.low is not None:
        assert limits(told) == pytest.approx(limits(found))


def test_no_tries_have_no_share() -> None:
    assert share_interval(ShareSums(0, 0, 0, 0, 0, 0)) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 3)), min_size=1, max_size=20))
def test_a_weighted_mean_is_that_of_values_that_often(rows: list[tuple[float, int]]) -> None:
    values, weights = [value for value, _ in rows], [float(weight) for _, weight in rows]
    found = mean_interval(values, range(len(rows)), weights=weights)
    repeated = [(value, place) for place, (value, weight) in enumerate(rows) for _ in range(weight)]
    expected = mean_interval([value for value, _ in repeated], [place for _, place in repeated])
    assert found is not None
    assert expected is not None
    assert found.mean == pytest.approx(expected.mean)
    if len(set(weights)) > 1:
        assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
