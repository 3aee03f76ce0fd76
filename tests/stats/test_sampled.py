"""Means over a population that only some were drawn from: by hand, at the edges, and over 2,000 simulated logs each."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vivavoce.stats.corrected import prediction_powered, rogan_gladen, table_of
from vivavoce.stats.intervals import mean_interval, score_limits, wilson
from vivavoce.stats.sampled import (
    Design,
    PopulationMean,
    Units,
    allocation,
    inclusion,
    population_mean,
    population_weights,
    size_for_half_width,
    systematic,
    with_floor,
)

LOGS = 2000
SHARES = (0.5, 0.3, 0.17, 0.03)
"""Strata of these shares: harder ones are rarer."""
SIZE, SAMPLE_SIZE = 2500, 250

Kind = Literal["simple", "stratified", "importance", "both"]
Numbers = NDArray[np.float64]
Places = NDArray[np.intp]


def mean_of(values: list[float], strata: list[int], chances: list[float], design: Design) -> PopulationMean:
    estimate = population_mean(values, Units(strata, chances), design)
    assert estimate is not None
    return estimate


def test_a_stratified_mean_and_its_variance_are_those_of_the_textbook() -> None:
    values, strata = [0.2, 0.4, 0.9, 0.5, 0.7], [0, 0, 0, 1, 1]
    estimate = mean_of(values, strata, [0.3, 0.3, 0.3, 0.02, 0.02], Design([10, 100], [3, 2]))
    assert estimate.mean == pytest.approx((10 * 0.5 + 100 * 0.6) / 110)
    variance = (10**2 * 0.7 * 0.13 / 3 + 100**2 * 0.98 * 0.02 / 2) / 110**2
    squares = (3 * (10 / 3) ** 2 * 0.7 + 2 * 50**2 * 0.98) / 110**2
    ends = score_limits(estimate.mean, variance, squares, squares, 0.95, freedom=3)
    assert (estimate.low, estimate.high) == pytest.approx(ends)


def test_passes_of_a_few_of_very_many_have_the_interval_of_wilson() -> None:
    values = [1.0] * 90 + [0.0] * 10
    estimate = mean_of(values, [0] * 100, [1e-7] * 100, Design([10**9], [100]))
    usual = mean_interval(values)
    assert usual is not None
    assert estimate.mean == usual.mean
    assert (estimate.low, estimate.high) == pytest.approx((usual.low, usual.high), abs=0.002)


def test_what_was_drawn_for_certain_leaves_nothing_to_chance() -> None:
    whole = mean_of([1.0, 0.0, 1.0], [0, 0, 0], [1.0, 1.0, 1.0], Design([3], [3]))
    assert (whole.low, whole.mean, whole.high, whole.effective) == (2 / 3, 2 / 3, 2 / 3, math.inf)
    partly = mean_of(
        [1.0] * 50 + [0.0, 1.0] * 5, [0] * 50 + [1] * 10, [1.0] * 50 + [0.1] * 10, Design([50, 100], [50, 10])
    )
    assert partly.low > 50 / 150


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_values_that_all_agree_are_no_certainty(end: float) -> None:
    estimate = mean_of([end] * 20, [0] * 20, [0.002] * 20, Design([10_000], [20]))
    low, high = wilson(20 * end, 20)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.02)
    graded = mean_of([0.4] * 20, [0] * 20, [0.002] * 20, Design([10_000], [20]))
    assert graded.low < 0.38


def test_a_mean_of_no_value_is_unknown_and_one_value_says_little() -> None:
    assert population_mean([], Units([], []), Design([5], [2])) is None
    single = mean_of([1.0], [0], [0.2], Design([5], [1]))
    assert (single.mean, single.high) == (1.0, 1.0)
    assert 0 < single.low < 0.21


def test_others_of_a_stratum_stand_for_those_that_are_not_known() -> None:
    design = Design([60, 40], [6, 4])
    estimate = mean_of([1.0, 1.0, 0.0, 0.0], [0, 0, 1, 1], [0.1] * 4, design)
    assert estimate.mean == pytest.approx(0.6)
    assert population_weights(Units([0, 0, 1, 1], [0.1] * 4), design) == pytest.approx([30, 30, 20, 20])


def test_a_stratum_of_which_one_or_none_is_known_is_counted_with_another() -> None:
    design = Design([60, 30, 10], [6, 3, 2])
    assert mean_of([1.0, 0.0, 1.0, 1.0], [0, 0, 0, 1], [0.1] * 4, design).low > 0
    assert sum(population_weights(Units([0, 0, 0, 1], [0.1] * 4), design)) == pytest.approx(100)


def test_a_part_of_the_population_has_its_own_mean() -> None:
    units, outside, design = Units([0, 0, 1], [0.1] * 3), Units([0, 1, 1, 1], [0.1] * 4), Design([40, 40], [4, 4])
    estimate = population_mean([1.0, 0.0, 1.0], units, design, outside)
    assert estimate is not None
    assert estimate.mean == pytest.approx((40 / 3 + 10) / (80 / 3 + 10))


class Log:
    """A log that each call draws from: the same strata and weights, but other conversations each time."""

    def __init__(self, kind: Kind, rate: float, *, seed: int = 7) -> None:
        self.random = np.random.RandomState(seed)
        self.hard = np.repeat(np.arange(4), [round(SIZE * share) for share in SHARES])
        odds = rate / (1 - rate) * np.exp(np.array([-0.6, 0.0, 0.6, 1.2]))[self.hard]
        self.rates = np.clip(odds / (1 + odds) * rate / float((odds / (1 + odds)).mean()), 0.0, 0.999)
        strata = self.hard if kind in ("stratified", "both") else np.zeros(SIZE, dtype=np.intp)
        sizes = np.bincount(strata).tolist()
        self.design = Design(sizes, allocation(sizes, SAMPLE_SIZE))
        spread = np.exp(0.5 * self.hard + 0.4 * self.random.normal(size=SIZE))
        weights = with_floor(spread) if kind in ("importance", "both") else np.ones(SIZE)
        self.strata: list[tuple[Places, Numbers]] = []
        for stratum, size in enumerate(self.design.sample_sizes):
            places = np.flatnonzero(strata == stratum)
            self.strata.append((places, inclusion(weights[places], size)))
        self.of = strata
        self.chances = np.zeros(SIZE)
        for places, chances in self.strata:
            self.chances[places] = chances

    def values(self) -> Numbers:
        return (self.random.random_sample(SIZE) < self.rates).astype(np.float64)

    def draw(self) -> Places:
        return np.concatenate([places[systematic(chances, self.random)] for places, chances in self.strata])

    def units(self, places: Places) -> Units:
        return Units(self.of[places], self.chances[places])


def is_between(low: float | None, truth: float, high: float | None) -> bool:
    assert low is not None
    assert high is not None
    return low <= truth <= high


@pytest.mark.parametrize("kind", ["simple", "stratified", "importance", "both"])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9, 0.98])
def test_the_interval_holds_the_truth_in_93_to_97_of_100_logs(kind: Kind, rate: float) -> None:
    log, hits = Log(kind, rate), 0
    for _ in range(LOGS):
        values, places = log.values(), log.draw()
        estimate = population_mean(values[places], log.units(places), log.design)
        assert estimate is not None
        hits += is_between(estimate.low, float(values.mean()), estimate.high)
    assert 0.93 <= hits / LOGS <= 0.97


@pytest.mark.parametrize("kind", ["stratified", "importance"])
def test_so_it_does_where_some_are_errors_and_a_metric_applies_to_a_part(kind: Kind) -> None:
    log, hits = Log(kind, 0.2), 0
    for _ in range(LOGS):
        values, places = log.values(), log.draw()
        applies = log.random.random_sample(SIZE) < 0.7
        known = places[log.random.random_sample(len(places)) > 0.08 * log.of[places]]
        inside, outside = known[applies[known]], known[~applies[known]]
        estimate = population_mean(values[inside], log.units(inside), log.design, log.units(outside))
        assert estimate is not None
        hits += is_between(estimate.low, float(values[applies].mean()), estimate.high)
    assert 0.93 <= hits / LOGS <= 0.97


@pytest.mark.parametrize("kind", ["simple", "stratified", "importance"])
def test_so_it_does_for_scores_from_0_to_1(kind: Kind) -> None:
    log, hits = Log(kind, 0.3), 0
    for _ in range(LOGS):
        values, places = log.random.beta(4 * log.rates, 4 - 4 * log.rates), log.draw()
        estimate = population_mean(values[places], log.units(places), log.design)
        assert estimate is not None
        hits += is_between(estimate.low, float(values.mean()), estimate.high)
    assert 0.93 <= hits / LOGS <= 0.97


def judge(random: np.random.RandomState, truth: Numbers) -> Numbers:
    """What a judge says that passes 90% of the good and 15% of the bad."""
    return (random.random_sample(len(truth)) < np.where(truth == 1, 0.9, 0.15)).astype(np.float64)


@pytest.mark.parametrize("kind", ["stratified", "importance"])
def test_labels_from_elsewhere_correct_the_rate_of_the_population(kind: Kind) -> None:
    log, hits = Log(kind, 0.6), 0
    for _ in range(LOGS):
        values, places = log.values(), log.draw()
        verdicts = judge(log.random, values)[places]
        elsewhere = (log.random.random_sample(200) < 0.5).astype(np.float64)
        there = judge(log.random, elsewhere)
        table = table_of(elsewhere.tolist(), there.tolist(), range(200))
        whole = population_mean(verdicts, log.units(places), log.design)
        corrected = rogan_gladen(verdicts.tolist(), places.tolist(), table, population=whole)
        hits += is_between(corrected.low, float(values.mean()), corrected.high)
    assert 0.93 <= hits / LOGS <= 0.975


@pytest.mark.parametrize("kind", ["simple", "importance"])
def test_labels_of_drawn_conversations_correct_the_rate_of_the_population(kind: Kind) -> None:
    log, hits = Log(kind, 0.6), 0
    for _ in range(LOGS):
        values, places = log.values(), log.draw()
        verdicts = judge(log.random, values)[places]
        order = log.random.permutation(len(places))
        labelled, rest = order[:80], order[80:]
        units = log.units(places)
        stands_for = np.asarray(population_weights(units, log.design))
        corrected = prediction_powered(
            values[places][labelled].tolist(),
            verdicts[labelled].tolist(),
            labelled.tolist(),
            verdicts[rest].tolist(),
            rest.tolist(),
            (1 / log.chances[places][labelled]).tolist(),
            stands_for=stands_for[order].tolist(),
        )
        hits += is_between(corrected.low, float(values.mean()), corrected.high)
    assert 0.93 <= hits / LOGS <= 0.975


@settings(deadline=None)
@given(st.integers(2, 200), st.integers(1, 3_000), st.sampled_from([0.0, 1.0]))
def test_the_draws_for_half_the_width_are_the_fewest_whose_interval_has_it(size: int, others: int, rate: float) -> None:
    population = size + others

    def width(number: int) -> float:
        units = Units([0] * number, [number / population] * number)
        estimate = population_mean([rate] * number, units, Design([population], [number]))
        assert estimate is not None
        return estimate.high - estimate.low

    needed = size_for_half_width(size, population, rate)
    assert width(needed) <= width(size) / 2 + 1e-9
    assert needed == size or width(needed - 1) >= width(size) / 2 - 1e-9


@pytest.mark.parametrize(("rate", "factor"), [(0.5, 4.0), (0.9, 3.8), (1.0, 2.0), (0.0, 2.0)])
def test_near_the_ends_half_the_width_takes_twice_as_many_and_not_four_times(rate: float, factor: float) -> None:
    assert size_for_half_width(100, 10**6, rate) / 100 == pytest.approx(factor, rel=0.06)


def test_few_draws_of_a_few_have_their_half_width_with_all_of_them() -> None:
    assert size_for_half_width(5, 6, 0.5) == 6
    assert size_for_half_width(1, 1, 1.0) == 1
