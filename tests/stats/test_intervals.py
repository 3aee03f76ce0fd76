from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.intervals import Estimate, mean_interval, percentile, share_interval, wilson

SCORES = st.floats(0, 1)
ANYWHERE = (-math.inf, math.inf)


def limits(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_no_values_have_no_mean() -> None:
    assert mean_interval([]) is None


def test_one_cluster_says_as_much_as_one_value() -> None:
    assert limits(mean_interval([1.0])) == pytest.approx(wilson(1, 1))
    assert limits(mean_interval([0.0])) == pytest.approx(wilson(0, 1))
    trials = mean_interval([1.0, 0.0, 1.0, 1.0], ["a"] * 4)
    assert trials is not None
    assert (trials.n, trials.clusters) == (4, 1)
    assert limits(trials) == pytest.approx(limits(mean_interval([0.75])))
    assert 0 < limits(trials)[0] < 0.2 < 0.95 < limits(trials)[1] < 1


def test_without_bounds_single_values_get_the_textbook_t_interval() -> None:
    # mean 0.5, s = 0.158114, s / sqrt(5) = 0.0707107, t(4, 0.975) = 2.776445
    interval = mean_interval([0.3, 0.4, 0.5, 0.6, 0.7], bounds=ANYWHERE)
    assert limits(interval) == pytest.approx((0.303676, 0.696324), abs=1e-6)
    assert mean_interval([0.5], bounds=ANYWHERE) == Estimate(0.5, None, None, 1, 1)


def test_without_bounds_values_of_one_cluster_are_not_independent() -> None:
    # residual sums -0.4, 0.1, 0.3: error = sqrt(3/2 * 0.26) / 6 = 0.104083, t(2, 0.975) = 4.302653
    values, clusters = [0.2, 0.4, 0.5, 0.6, 0.6, 0.7], [1, 1, 2, 2, 3, 3]
    estimate = mean_interval(values, clusters, bounds=ANYWHERE)
    assert limits(estimate) == pytest.approx((0.5 - 0.447834, 0.5 + 0.447834), abs=1e-6)
    assert estimate is not None
    assert (estimate.n, estimate.clusters) == (6, 3)


def test_trials_that_agree_count_once_and_trials_that_vary_count_more() -> None:
    of = [place // 3 for place in range(30)]
    alike = limits(mean_interval([1.0] * 15 + [0.0] * 15, of))
    assert alike == pytest.approx(wilson(5, 10))
    varied = limits(mean_interval([1.0, 0.0, 1.0, 0.0, 1.0, 0.0] * 5, of))
    assert alike[0] < varied[0] < varied[1] < alike[1]


TRIALS = st.lists(st.lists(SCORES | st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=1, max_size=8)


@given(TRIALS, st.data())
def test_a_higher_value_never_lowers_an_end(samples: list[list[float]], data: st.DataObject) -> None:
    values, of = (
        [value for trials in samples for value in trials],
        [n for n, trials in enumerate(samples) for _ in trials],
    )
    place = data.draw(st.integers(0, len(values) - 1))
    higher = [*values]
    higher[place] = data.draw(st.floats(values[place], 1))
    before, after = limits(mean_interval(values, of)), limits(mean_interval(higher, of))
    assert after[0] >= before[0] - 1e-9
    assert after[1] >= before[1] - 1e-9


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=12), st.data())
def test_one_more_pass_never_lowers_an_end(counts: list[tuple[int, int]], data: st.DataObject) -> None:
    samples = [(passed, passed + failed) for passed, failed in counts]
    open_ = [place for place, (passed, tries) in enumerate(samples) if passed < tries]
    if not open_:
        return
    place = data.draw(st.sampled_from(open_))
    better = [*samples]
    better[place] = samples[place][0] + 1, samples[place][1]
    before, after = limits(share_interval(Counter(samples))), limits(share_interval(Counter(better)))
    assert after[0] >= before[0] - 1e-9
    assert after[1] >= before[1] - 1e-9


def test_all_passes_are_never_worse_than_one_failure() -> None:
    of = [place // 3 for place in range(30)]
    every, one_failed = [1.0] * 30, [1.0] * 29 + [0.0]
    assert limits(mean_interval(every, of))[0] > limits(mean_interval(one_failed, of))[0]
    assert limits(mean_interval([1.0] * 10))[0] > limits(mean_interval([1.0] * 9 + [0.99]))[0]
    assert limits(mean_interval([0.7] * 10))[0] < limits(mean_interval([0.7] * 9 + [0.71]))[0]


@given(st.lists(SCORES, min_size=2, max_size=20), st.integers(2, 4))
def test_repeating_every_value_inside_its_cluster_adds_no_certainty(values: list[float], times: int) -> None:
    inner = [0.25 + value / 2 for value in values]
    repeated = mean_interval(inner * times, list(range(len(inner))) * times)
    assert limits(repeated) == pytest.approx(limits(mean_interval(inner)), abs=1e-6)


@given(st.lists(st.tuples(SCORES, st.integers(0, 5)), min_size=1))
def test_the_interval_holds_the_mean_and_stays_within_the_bounds(pairs: list[tuple[float, int]]) -> None:
    estimate = mean_interval([value for value, _ in pairs], [cluster for _, cluster in pairs])
    assert estimate is not None
    low, high = limits(estimate)
    assert 0 <= low <= estimate.mean + 1e-12
    assert estimate.mean - 1e-12 <= high <= 1
    if len({value for value, _ in pairs}) == 1:
        assert high - low > 1e-4, "agreement of a few is not certainty"


def test_passes_and_failures_get_wilsons_interval() -> None:
    assert limits(mean_interval([1, 1, 1, 1, 1, 1, 1, 0, 0, 0])) == pytest.approx(wilson(7, 10), abs=1e-12)


@pytest.mark.parametrize("outcome", [0, 1])
def test_five_of_five_is_no_certainty(outcome: int) -> None:
    assert limits(mean_interval([outcome] * 5)) == pytest.approx(wilson(5 * outcome, 5))


def test_unanimous_clusters_count_once_however_many_values_they_hold() -> None:
    assert limits(mean_interval([1] * 20, [place // 4 for place in range(20)])) == pytest.approx(wilson(5, 5))


def test_clusters_that_agree_on_a_number_may_still_be_contradicted() -> None:
    alone = limits(mean_interval([0.7] * 5))
    assert alone == pytest.approx(limits(mean_interval([0.5, 0.9] * 5, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])))
    assert 0.3 < alone[0] < 0.6 < 0.8 < alone[1] < 1


def test_without_bounds_equal_values_give_no_interval() -> None:
    assert mean_interval([3.0, 3.0, 3.0], bounds=ANYWHERE) == Estimate(3.0, None, None, 3, 3)


def test_bounds_can_be_any_range() -> None:
    assert limits(mean_interval([-1, 1, 1], bounds=(-1, 1)))[1] == pytest.approx(2 * wilson(2, 3)[1] - 1)
    low, high = limits(mean_interval([100.0, 300.0], bounds=ANYWHERE))
    assert low < 0 < 400 < high


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
def test_counts_of_a_database_give_the_interval_of_the_values(pairs: list[tuple[int, int]]) -> None:
    counts = Counter(
        (sum(value for value, of in pairs if of == cluster), sum(of == cluster for _, of in pairs))
        for cluster in {cluster for _, cluster in pairs}
    )
    interval = mean_interval([float(value) for value, _ in pairs], [of for _, of in pairs])
    assert share_interval(counts) == interval


def test_no_tries_have_no_share() -> None:
    assert share_interval({}) is None
    assert share_interval({(0, 0): 3}) is None


@pytest.mark.parametrize("weight", [math.nan, math.inf, -1.0])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight 1 must be a finite number of at least 0"):
        mean_interval([0.5, 0.5], weights=[1.0, weight])


def test_weights_must_match_the_values_and_not_all_be_zero() -> None:
    with pytest.raises(ValueError, match="2 values, 1 weights"):
        mean_interval([0.5, 0.5], weights=[1.0])
    with pytest.raises(ValueError, match="at least one weight must be above 0"):
        mean_interval([0.5, 0.5], weights=[0.0, 0.0])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 3)), min_size=1, max_size=20))
def test_a_weighted_mean_is_that_of_values_that_often(rows: list[tuple[float, int]]) -> None:
    values, weights = [value for value, _ in rows], [float(weight) for _, weight in rows]
    interval = mean_interval(values, range(len(rows)), weights=weights)
    repeated = [(value, place) for place, (value, weight) in enumerate(rows) for _ in range(weight)]
    expected = mean_interval([value for value, _ in repeated], [place for _, place in repeated])
    assert interval is not None
    assert expected is not None
    assert interval.mean == pytest.approx(expected.mean)
    if len(set(weights)) > 1:
        assert (interval.low, interval.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_the_effective_number_is_the_one_that_the_reference_prints() -> None:
    means = [0.25, 0.5, 1.0, 1.0, 0.75]
    n, m, half_square = len(means), sum(means) / 5, 1.959963984540054**2 / 2
    size = n * (n * m * (1 - m) + half_square) / (sum((mean - m) ** 2 for mean in means) + half_square)
    assert limits(mean_interval(means)) == pytest.approx(wilson(m * size, size))


def test_a_further_trial_of_one_sample_can_lower_an_end() -> None:
    even = limits(mean_interval([1.0] * 10))
    uneven = limits(mean_interval([1.0] * 29, [0] * 20 + list(range(1, 10))))
    assert (round(even[0], 3), round(uneven[0], 3)) == (0.722, 0.349)
