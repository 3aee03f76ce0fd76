from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import RECORDINGS, needs_recordings
from vivavoce.stats.intervals import Passes, mean_interval, pass_at_k, pass_hat_k, passes, passes_by_k, wilson

AIRLINE = RECORDINGS / "tau_bench_airline/sierra__gpt-4o__airline.jsonl"


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_both_are_the_share_of_all_draws_of_k_trials(outcomes: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(outcomes)))
    draws = list(combinations(outcomes, k))
    assert pass_at_k(sum(outcomes), len(outcomes), k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(sum(outcomes), len(outcomes), k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_samples_with_fewer_trials_are_left_out_and_counted() -> None:
    interval = mean_interval([1.0, 0.0])
    assert interval is not None
    low, high = interval.low, interval.high
    expected = Passes(k=2, at_k=1.0, hat_k=0.5, hat_low=low, hat_high=high, samples=2, left_out=1)
    assert passes([(2, 2), (1, 2), (1, 1)], k=2) == expected


def test_a_chance_of_zero_has_an_interval_above_zero() -> None:
    none_always_passes = passes([(1, 2), (0, 2), (1, 2), (1, 2)], k=2)
    assert none_always_passes is not None
    assert (none_always_passes.hat_k, none_always_passes.hat_low) == (0.0, 0.0)
    assert none_always_passes.hat_high == pytest.approx(wilson(0, 4)[1])


def test_without_enough_trials_there_is_no_result() -> None:
    assert passes([(1, 1)], k=2) is None
    assert passes([], k=1) is None


@pytest.mark.parametrize(("successes", "trials", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 3), (1, 2, 0)])
def test_impossible_counts_are_refused(successes: int, trials: int, k: int) -> None:
    for chance in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=f"got {successes} of {trials} trials with k = {k}"):
            chance(successes, trials, k)


@needs_recordings
def test_real_conversations_give_the_published_figures() -> None:
    rewards: defaultdict[int, list[float]] = defaultdict(list)
    for line in AIRLINE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rewards[row["metadata"]["task_id"]].append(row["labels"]["reward"])
    counts = [(sum(reward == 1 for reward in trials), len(trials)) for trials in rewards.values()]
    results = [passes(counts, k) for k in (1, 2, 3, 4)]
    assert [round(result.hat_k, 3) for result in results if result] == [0.420, 0.273, 0.220, 0.200]
    assert [result.samples for result in results if result] == [50] * 4


def test_every_k_is_over_the_same_samples_so_that_pass_hat_k_never_rises() -> None:
    hard, easy = [(0, 1)] * 5 + [(1, 2)] * 3, [(3, 3)] * 10 + [(2, 3), (4, 20)]
    by_k = passes_by_k([*hard, *easy])
    assert list(by_k) == [1, 2, 3]
    assert {(passes_at_k.samples, passes_at_k.left_out) for passes_at_k in by_k.values()} == {(12, 8)}
    hats = [passes_at_k.hat_k for passes_at_k in by_k.values()]
    assert hats == sorted(hats, reverse=True)


@pytest.mark.parametrize(
    ("counts", "largest"), [([], 0), ([(1, 1)] * 3, 0), ([(1, 2), (1, 1)], 0), ([(1, 2), (1, 2), (1, 1)], 2)]
)
def test_the_largest_k_is_one_that_most_samples_have(counts: list[tuple[int, int]], largest: int) -> None:
    assert max(passes_by_k(counts), default=0) == largest


@given(st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=12))
def test_pass_hat_k_falls_and_pass_at_k_rises(counts: list[tuple[int, int]]) -> None:
    by_k = list(passes_by_k(counts).values())
    assert all(
        first.hat_k >= second.hat_k - 1e-12 and first.at_k <= second.at_k + 1e-12 for first, second in pairwise(by_k)
    )
    assert all(2 * passes_at_k.samples > len(counts) for passes_at_k in by_k)
