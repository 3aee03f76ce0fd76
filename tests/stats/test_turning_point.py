"""Where the odds of a conversation fell: how often a wrong turn is named, and how many trials it takes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from vivavoce.stats.turning_point import (
    LEVEL,
    ROUND,
    Tried,
    fall,
    fell,
    fixed_trials,
    next_place,
    share_limits,
    turn_probabilities,
)

RUNS = 120
MAX_TRIALS = 300


def search(odds: list[float], random: np.random.Generator, most: int = MAX_TRIALS) -> list[Tried]:
    """Return the continuations of a search in which those of each place succeed with these odds."""
    places = [Tried() for _ in odds]
    while sum(place.tried for place in places) < most and (place := next_place(places)) is not None:
        passed, tried = places[place]
        places[place] = Tried(passed + int(random.binomial(ROUND, odds[place])), tried + ROUND)
    return places


def curve(before: float, after: float, turn: int, turns: int) -> list[float]:
    return [before if place < turn else after for place in range(turns)]


@pytest.mark.parametrize(
    ("before", "after", "turn", "turns"),
    [(0.9, 0.05, 3, 6), (0.7, 0.05, 2, 10), (0.8, 0.1, 13, 20), (0.5, 0.0, 4, 6), (0.7, 0.7, 10, 10), (0.9, 0.1, 1, 3)],
)
def test_the_turn_of_one_fall_is_found_with_at_most_half_the_trials_of_a_fixed_design(
    before: float, after: float, turn: int, turns: int
) -> None:
    random = np.random.default_rng(turn)
    odds = curve(before, after, turn, turns)
    ends = [search(odds, random) for _ in range(RUNS)]
    turns_found = [fall(places).turn for places in ends]
    right = sum(turn_found == turn for turn_found in turns_found) / RUNS
    spent = sum(place.tried for places in ends for place in places) / RUNS
    assert right >= 0.95
    assert sum(turn_found not in (turn, None) for turn_found in turns_found) / RUNS <= 0.05
    assert spent <= 0.5 * fixed_design(odds, turn, right, random)


def fixed_design(odds: list[float], turn: int, right: float, random: np.random.Generator) -> int:
    """Return the trials of the smallest design that tries each place equally often and names the turn as often."""
    turns = len(odds)
    for some in range(2, 200):
        counts = random.binomial(some, odds, size=(RUNS, turns))
        if np.mean([named_by_fisher(passed.tolist(), some) == turn for passed in counts]) >= right:
            return some * turns
    raise AssertionError("no fixed design is as good")


def named_by_fisher(passed: list[int], tried: int) -> int | None:
    """Return the turn of the largest fall, where Fisher's exact test shows it at a level for all turns."""
    falls = [first - second for first, second in zip(passed, [*passed[1:], 0], strict=True)]
    turn = falls.index(max(falls)) + 1
    if turn == len(passed):
        return turn if passed[-1] else None
    before, after = passed[turn - 1 : turn + 1]
    sizes = (before - 1, 2 * tried, before + after, tried)
    chance = float(hypergeom.sf(*sizes))  # pyright: ignore[reportUnknownMemberType]
    return turn if chance < (1 - LEVEL) / len(passed) else None


def test_no_turn_is_named_where_the_odds_rise_before_the_end() -> None:
    random = np.random.default_rng(5)
    odds = [0.4, 0.5, 0.6, 0.7, 0.8]
    turns_found = [fall(search(odds, random)).turn for _ in range(RUNS)]
    assert sum(turn_found not in (None, 5) for turn_found in turns_found) / RUNS <= 0.05


def test_a_conversation_that_goes_wrong_from_its_beginning_is_recognised_soon() -> None:
    places = search([0.0] * 8, np.random.default_rng(1))
    assert fall(places).seldom
    assert fall(places).turn is None
    assert sum(place.tried for place in places) == places[0].tried <= 15


def test_of_a_slow_decline_no_turn_is_named_and_the_limit_holds() -> None:
    random = np.random.default_rng(7)
    ends = [search(list(np.linspace(0.95, 0.05, 10)), random, 90) for _ in range(20)]
    assert sum(fall(places).turn is None for places in ends) >= 18
    assert all(sum(place.tried for place in places) <= 90 for places in ends)


def test_intervals_hold_at_any_time() -> None:
    random = np.random.default_rng(2)
    for chance in (0.05, 0.5, 0.9):
        missed = 0
        for _ in range(300):
            passed = np.cumsum(random.random(150) < chance)
            ends = [share_limits(int(passes), tried) for tried, passes in enumerate(passed, 1)]
            missed += any(not end.low <= chance <= end.high for end in ends)
        assert missed / 300 <= 0.05


def test_an_interval_narrows_and_reaches_its_ends_only_where_all_agree() -> None:
    assert share_limits(0, 0) == (0.0, 1.0)
    assert share_limits(0, 14).low == 0.0
    assert share_limits(14, 14).high == 1.0
    assert share_limits(0, 14).high == pytest.approx(1 - share_limits(14, 14).low)
    some, many = share_limits(5, 10), share_limits(50, 100)
    assert some.low < many.low < 0.5 < many.high < some.high


def test_two_places_with_the_same_odds_are_seldom_told_apart_however_often_one_looks() -> None:
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        before, after = Tried(), Tried()
        for _ in range(60):
            first, second = random.random(2) < 0.5
            before = Tried(before.passed + int(first), before.tried + 1)
            after = Tried(after.passed + int(second), after.tried + 1)
            if fell(before, after):
                wrong += 1
                break
    assert wrong / 300 <= 0.05


def test_only_a_fall_is_one() -> None:
    assert fell(Tried(10, 10), Tried(0, 10))
    assert not fell(Tried(0, 10), Tried(10, 10))
    assert not fell(Tried(5, 10), Tried())
    assert not fell(Tried(6, 10), Tried(5, 10))


def test_trials_go_where_they_say_most() -> None:
    assert next_place([Tried()] * 9) == 0
    assert next_place([Tried(3, 3), *[Tried()] * 8]) in range(3, 7)
    likely = [Tried(3, 3), Tried(), Tried(6, 6), Tried(0, 3), Tried(0, 3)]
    assert turn_probabilities(likely).argmax() == 2
    assert turn_probabilities(likely).sum() == pytest.approx(1)
    assert next_place(likely) == 3
    assert next_place([Tried(3, 3), Tried(9, 9), Tried(0, 9)]) is None


def test_a_fixed_design_shows_the_same_with_equally_many_at_each_place() -> None:
    places = [Tried(3, 3), Tried(6, 6), Tried(0, 6), *[Tried()] * 7]
    trials = fixed_trials(places, 2)
    assert trials is not None
    assert trials > sum(place.tried for place in places)
    assert trials % len(places) == 0
    assert fixed_trials([Tried(5, 10), Tried(5, 10), Tried(5, 10)], 1) is None


def test_there_is_nothing_to_find_without_turns() -> None:
    with pytest.raises(ValueError, match="without turns"):
        fall([])
