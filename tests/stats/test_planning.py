"""Planned numbers of samples, trials and labels, against simulated comparisons and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vivavoce.stats.paired import paired_difference
from vivavoce.stats.planning import UNSEEN, WORST, fewest_changes, labels_for, samples_for, seen_by, spread, trials_for


@pytest.mark.parametrize(("difference", "trials", "within"), [(0.1, 1, 0.16), (0.1, 5, 0.16), (0.2, 2, 0.25)])
def test_the_planned_samples_show_the_change_about_as_often_as_planned(
    difference: float, trials: int, within: float
) -> None:
    samples = samples_for(difference, within, trials, 0.8)
    assert samples is not None
    random, seen, runs = np.random.default_rng(3), 0, 400
    chance = 0.5 - math.sqrt(0.25 - within)  # of passing, for which a trial has this variance
    for _ in range(runs):
        # a share of the samples changes from one end of the scale to the other, which is the worst case
        changed = random.random(samples) < difference
        before = np.where(changed, 0.0, random.binomial(trials, chance, samples) / trials)
        after = np.where(changed, 1.0, random.binomial(trials, chance, samples) / trials)
        change = paired_difference(
            {str(n): [score] for n, score in enumerate(before)}, {str(n): [score] for n, score in enumerate(after)}
        )
        seen += change is not None and change.low is not None and change.low > 0
    assert 0.74 < seen / runs < 0.97


def test_more_trials_help_down_to_what_samples_alone_cost() -> None:
    sizes = [samples_for(0.05, 0.2, trials, 0.8) or 0 for trials in (1, 2, 5, 20, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == samples_for(0.05, 0.0, 1, 0.8)


def test_a_large_number_of_samples_is_that_of_the_normal_formula() -> None:
    z = 1.959964 + 0.841621
    expected = z**2 * spread(0.01, 0.2, 1) / 0.01**2 + 2 * UNSEEN / 0.01
    assert samples_for(0.01, 0.2, 1, 0.8) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("samples", [2, 3, 5])
def test_too_few_samples_show_no_change(samples: int) -> None:
    assert seen_by(samples, 0.0, 10, 0.8) is None
    assert trials_for(0.99, 0.0, samples, 0.8) is None


def test_six_samples_show_the_change_of_nearly_all() -> None:
    assert fewest_changes() == 6
    assert fewest_changes(0.99) == 8
    assert seen_by(6, 0.0, 1, 0.8) == pytest.approx(0.8 ** (1 / 6), abs=1e-6)
    assert samples_for(0.97, 0.0, 1, 0.8) == 6


@pytest.mark.parametrize("trials", [1, 3, 10])
@pytest.mark.parametrize("within", [0.05, 0.25])
def test_what_is_seen_and_what_it_takes_are_one_formula(trials: int, within: float) -> None:
    seen = seen_by(200, within, trials, 0.8)
    assert seen is not None
    assert samples_for(seen * (1 + 1e-9), within, trials, 0.8) == 200
    assert trials_for(seen, within, 200, 0.8) == trials


def test_no_number_of_trials_makes_up_for_samples() -> None:
    assert trials_for(0.05, 0.2, 20, 0.8) is None
    assert seen_by(1, 0.2, 5, 0.8) is None
    assert trials_for(0.05, 0.2, 1, 0.8) is None


def test_labels_are_those_of_a_proportion() -> None:
    assert labels_for(0.05) == 385  # 1.96 squared times a quarter, by 0.05 squared
    assert labels_for(0.05, 0.1) == 154
    assert labels_for(0.05, WORST) > labels_for(0.1, WORST)


@pytest.mark.parametrize(("difference", "power"), [(0, 0.8), (1, 0.8), (0.1, 0.4), (0.1, 1.0)])
def test_what_cannot_be_planned_is_refused(difference: float, power: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1|at least 0\.5"):
        samples_for(difference, 0.2, 1, power)
