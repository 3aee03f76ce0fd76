"""Two thresholds chosen on labels: the cheapest under which the whole agrees as far as the expensive judge."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from vivavoce.features.calibration.thresholds import (
    MAX_THRESHOLDS,
    Labelled,
    Thresholds,
    between,
    choose_thresholds,
    worth,
)


def build_cases(
    good: Sequence[bool],
    says: Sequence[float],
    then: Sequence[bool],
    price: float = 0.1,
    samples: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> Labelled:
    n = len(good)
    values = np.array(says, dtype=np.float64)
    return Labelled(
        np.array(good, dtype=np.bool_),
        values,
        values.copy(),
        np.array(then, dtype=np.bool_),
        np.full(n, price),
        np.ones(n),
        samples or [str(number) for number in range(n)],
        np.array(weights or [1.0] * n),
    )


def sure_and_unsure(n: int = 200) -> Labelled:
    """Return a cheap judge that is right where it says 0.1 or 0.9, and half as often where it says 0.5."""
    good = [number % 2 == 0 for number in range(n)]
    says = [0.5 if number % 10 < 3 else 0.9 if good[number] else 0.1 for number in range(n)]
    return build_cases(good, says, [each if place % 25 else not each for place, each in enumerate(good)])


def test_only_what_the_cheap_judge_does_not_know_goes_on() -> None:
    cases = sure_and_unsure()
    choice = choose_thresholds(cases)
    assert choice is not None
    assert (choice.thresholds, choice.cost) == (Thresholds(0.3, 0.7), pytest.approx(0.4))
    applied = choice.thresholds.of(cases)
    assert (applied.uncertain.sum(), applied.cost) == (60, pytest.approx(0.4))
    assert (applied.passed[~applied.uncertain] == cases.good[~applied.uncertain]).all()
    assert (applied.passed[applied.uncertain] == cases.then[applied.uncertain]).all()


def test_it_may_cost_no_more_than_is_said() -> None:
    assert choose_thresholds(sure_and_unsure(), 0.39) is None
    assert choose_thresholds(sure_and_unsure(), 0.4) is not None


def test_where_the_cheap_judge_guesses_nothing_is_chosen() -> None:
    random = np.random.default_rng(1)
    good, guess = random.random(400) < 0.5, random.random(400)
    assert choose_thresholds(build_cases(good.tolist(), guess.tolist(), good.tolist())) is None


def test_one_that_always_says_the_same_has_no_threshold() -> None:
    assert choose_thresholds(build_cases([True, False] * 50, [0.7] * 100, [True, False] * 50)) is None


def test_a_cheap_judge_as_good_as_the_other_decides_all_that_it_can() -> None:
    good = [place % 2 == 0 for place in range(200)]
    then = [each if place % 10 else not each for place, each in enumerate(good)]
    choice = choose_thresholds(build_cases(good, [0.9 if each else 0.1 for each in good], then))
    assert choice is not None
    assert (choice.thresholds, choice.cost) == (Thresholds(0.3, 0.5), pytest.approx(0.1))


def test_one_that_knows_only_the_bad_decides_only_these() -> None:
    good = [place % 2 == 0 for place in range(400)]
    says = [0.9 if each or place % 4 == 1 else 0.1 for place, each in enumerate(good)]
    choice = choose_thresholds(build_cases(good, says, good))
    assert choice is not None
    assert choice.thresholds == Thresholds(0.5, None)
    assert choice.cost == pytest.approx(0.1 + 300 / 400)


def test_what_may_not_decide_never_does() -> None:
    cases = sure_and_unsure()
    choice = choose_thresholds(replace(cases, low=np.full(200, np.inf)))
    assert choice is not None
    assert choice.thresholds == Thresholds(None, 0.7)
    assert choice.cost == pytest.approx(0.1 + 140 / 200)


def test_every_pair_is_what_its_thresholds_come_to() -> None:
    """The sums over each threshold give the cost of the pair, as `of` counts it."""
    random = np.random.default_rng(3)
    good = random.random(300) < 0.6
    says = np.round(np.clip(np.where(good, 0.8, 0.2) + random.normal(0, 0.25, 300), 0, 1), 2)
    then = np.where(random.random(300) < 0.9, good, ~good)
    weights = random.choice([1.0, 2.0], 300).tolist()
    cases = build_cases(good.tolist(), says.tolist(), then.tolist(), weights=weights)
    choice = choose_thresholds(cases)
    assert choice is not None
    assert choice.thresholds.of(cases).cost == pytest.approx(choice.cost)


@pytest.mark.parametrize(
    ("values", "thresholds"),
    [
        ([0.1, 0.5, 0.9], [0.3, 0.7]),
        ([0.91, 0.92], [0.92]),
        ([0.9, 0.9], []),
        ([], []),
        ([0.0, 1.0], [0.5]),
        ([0.991, 0.9915, 0.999], [0.9912, 0.995]),
    ],
)
def test_thresholds_have_as_few_digits_as_tell_values_apart(values: list[float], thresholds: list[float]) -> None:
    assert between(np.array(values, dtype=np.float64)).tolist() == thresholds


def test_of_many_values_only_some_thresholds_are_tried() -> None:
    assert len(between(np.linspace(0, 1, 100_000))) == MAX_THRESHOLDS


def test_labels_of_one_sample_are_worth_one() -> None:
    many = build_cases([True] * 6, [0.5] * 6, [True] * 6, samples=list("aabbcc"))
    assert worth(many) == pytest.approx(3)
    assert worth(build_cases([True] * 3, [0.5] * 3, [True] * 3, weights=[1, 1, 2])) == pytest.approx(16 / 6)


def test_a_part_of_the_labels_has_their_samples() -> None:
    part = sure_and_unsure().part(np.arange(200) < 2)
    assert (part.samples, part.low.tolist()) == (["0", "1"], [0.5, 0.5])


def test_a_hundred_thousand_labels_take_less_than_a_second() -> None:
    random = np.random.default_rng(2)
    good = random.random(100_000) < 0.5
    says = np.where(good, random.random(100_000) ** 0.5, 1 - random.random(100_000) ** 0.5)
    then = np.where(random.random(100_000) < 0.9, good, ~good)
    cases = build_cases(good.tolist(), says.tolist(), then.tolist())
    start = time.process_time()
    assert choose_thresholds(cases) is not None
    assert time.process_time() - start < 2  # the bench says how long on a machine that does nothing else
