from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.intervals import wilson
from vivavoce.stats.paired import PairedDifference, difference_of, holm_factors, paired_difference, sign_test
from vivavoce.stats.planning import seen_by

SIDE = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.floats(0, 1), max_size=3))


def compare(a: dict[str, list[float]], b: dict[str, list[float]]) -> PairedDifference:
    difference = paired_difference(a, b)
    assert difference is not None
    return difference


def test_trials_are_averaged_and_scenarios_paired() -> None:
    found = compare({"x": [0.0, 1.0], "y": [0.2], "z": [0.9]}, {"z": [0.7], "y": [0.4, 0.6], "x": [0.5]})
    assert found.mean == pytest.approx(0.1 / 3)
    assert (found.n, found.wins, found.losses, found.ties) == (3, 1, 1, 1)


def test_the_interval_is_that_of_the_differences() -> None:
    # differences 0.1, 0.2, 0.3: s / sqrt(3) = 0.0577350, t(2, 0.975) = 4.302653
    found = compare({"x": [0.1], "y": [0.2], "z": [0.3]}, {"x": [0.2], "y": [0.4], "z": [0.6]})
    assert (found.low, found.high) == pytest.approx((0.2 - 0.248414, 0.2 + 0.248414), abs=1e-6)


def test_scenarios_without_a_partner_or_without_a_score_are_named() -> None:
    found = compare({"x": [1.0], "old": [1.0], "broken": [1.0]}, {"x": [1.0], "new": [0.0], "broken": []})
    assert (found.n, found.only_a, found.only_b) == (1, ("broken", "old"), ("new",))
    assert (found.low, found.high, found.p_value) == (None, None, None)


def test_sides_that_share_nothing_cannot_be_compared() -> None:
    assert paired_difference({"x": [1.0]}, {"y": [1.0]}) is None
    assert paired_difference({}, {}) is None


def test_equal_runs_differ_by_zero_but_not_for_certain() -> None:
    scores = {str(place): [place / 50] for place in range(50)}
    found = compare(scores, scores)
    rare = wilson(0, 50)[1]
    assert (found.mean, found.ties, found.p_value) == (0, 50, 1)
    assert (found.low, found.high) == pytest.approx((-rare, rare))


def test_differences_tell_the_same_as_the_scores_they_come_from() -> None:
    a, b = {"x": [0.2], "y": [1.0], "z": [0.5]}, {"x": [0.7], "y": [0.4], "z": [0.5]}
    assert difference_of([0.7 - 0.2, 0.4 - 1.0, 0.0]) == compare(a, b)
    assert difference_of([]) is None


def test_trials_in_another_order_are_a_tie() -> None:
    one, other = {"x": [0.1, 0.2]}, {"x": [0.3, 0.0]}
    assert compare(one, other).ties == compare(other, one).ties == 1


@given(SIDE, SIDE)
def test_the_other_direction_has_the_opposite_sign(a: dict[str, list[float]], b: dict[str, list[float]]) -> None:
    there, back = paired_difference(a, b), paired_difference(b, a)
    if there is None or back is None:
        assert there is back
        return
    assert there.mean == pytest.approx(-back.mean)
    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)
    assert there.sign_p_value == back.sign_p_value
    if there.p_value is not None:
        assert there.p_value == pytest.approx(back.p_value)
    assert (there.only_a, there.only_b) == (back.only_b, back.only_a)
    assert there.wins + there.losses + there.ties == there.n


@pytest.mark.parametrize(
    ("wins", "losses", "expected"),
    [(0, 0, 1.0), (1, 0, 1.0), (3, 3, 1.0), (5, 0, 2 / 32), (8, 1, 20 / 512), (1, 8, 20 / 512)],
)
def test_the_p_value_is_exact(wins: int, losses: int, expected: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(expected)


def test_what_is_detectable_shows_in_four_of_five_comparisons() -> None:
    random = np.random.default_rng(5)
    values = random.normal(0.0, 0.2, 40)
    found = difference_of(values.tolist())
    assert found is not None
    variance = values.var(ddof=1) + np.abs(values).max() ** 2 / 39
    assert found.detectable == pytest.approx(seen_by(40, variance / 2, 1, 0.8))
    true = found.detectable or 0.0
    # a share of the samples changes from one end of the scale to the other, which is the worst case of the plan
    changes = random.normal(0.0, 0.2, (1000, 40)) + (random.random((1000, 40)) < true)
    sets = (difference_of(row.tolist()) for row in changes)
    assert np.mean([one is not None and (one.low or 0) > 0 for one in sets]) >= 0.78


@given(st.lists(st.sampled_from([-1.0, -0.5, -0.01, 0.0, 0.01, 0.5, 1.0]), min_size=2, max_size=30))
def test_the_p_value_and_the_interval_say_the_same(differences: list[float]) -> None:
    found = difference_of(differences)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.p_value is not None
    if abs(found.p_value - 0.05) > 1e-9:
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)


def test_four_losses_of_fifty_are_a_change_of_the_mean_and_none_of_the_counts() -> None:
    found = difference_of([-1.0] * 4 + [0.0] * 46)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((-0.15788, -0.00212), abs=1e-5)
    assert found.p_value == pytest.approx(0.0443, abs=1e-4)
    assert found.sign_p_value == pytest.approx(0.125)


def test_equal_differences_are_as_certain_as_ones_that_hardly_vary() -> None:
    alike, varied = difference_of([-0.01] * 6), difference_of([-0.01] * 5 + [-0.011])
    assert alike is not None
    assert varied is not None
    assert alike.high is not None
    assert varied.high is not None
    assert alike.high < 0
    assert varied.high < 0


def test_the_factors_of_holm_fall_to_the_first_that_is_not_kept() -> None:
    assert holm_factors([0.01, 0.04, 0.005], 0.05) == [2, 1, 3]
    assert holm_factors([0.04, 0.03, 0.005], 0.05) == [2, 2, 3]
    assert holm_factors([0.2, 0.3], 0.05) == [2, 2]
    assert holm_factors([], 0.05) == []


def test_one_pair_or_equal_ones_show_what_their_interval_does() -> None:
    one, none = difference_of([0.1]), difference_of([0.0] * 20)
    assert one is not None
    assert none is not None
    assert one.detectable is None
    assert none.detectable is not None
    assert none.high is not None
    assert none.high < none.detectable < 2.5 * none.high
