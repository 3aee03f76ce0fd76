from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.bounded_mean import bounded_mean
from vivavoce.stats.paired import PairedDifference, difference_of, holm, paired_difference, sign_test
from vivavoce.stats.planning import seen_by

SIDE = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.floats(0, 1), max_size=3))


def compare(a: dict[str, list[float]], b: dict[str, list[float]]) -> PairedDifference:
    difference = paired_difference(a, b)
    assert difference is not None
    return difference


def test_trials_are_averaged_and_scenarios_paired() -> None:
    comparison = compare({"x": [0.0, 1.0], "y": [0.2], "z": [0.9]}, {"z": [0.7], "y": [0.4, 0.6], "x": [0.5]})
    assert comparison.mean == pytest.approx(0.1 / 3)
    assert (comparison.n, comparison.wins, comparison.losses, comparison.ties) == (3, 1, 1, 1)


def test_the_interval_is_that_of_the_differences() -> None:
    comparison = compare({"x": [0.1], "y": [0.2], "z": [0.3]}, {"x": [0.2], "y": [0.4], "z": [0.6]})
    expected = bounded_mean([0.1, 0.2, 0.3], (-1.0, 1.0))
    assert (comparison.low, comparison.high) == pytest.approx((expected.low, expected.high))


def test_scenarios_without_a_partner_or_without_a_score_are_named() -> None:
    comparison = compare({"x": [1.0], "old": [1.0], "broken": [1.0]}, {"x": [1.0], "new": [0.0], "broken": []})
    assert (comparison.n, comparison.only_a, comparison.only_b) == (1, ("broken", "old"), ("new",))
    assert (comparison.low, comparison.high, comparison.p_value) == (None, None, None)


def test_sides_that_share_nothing_cannot_be_compared() -> None:
    assert paired_difference({"x": [1.0]}, {"y": [1.0]}) is None
    assert paired_difference({}, {}) is None


def test_equal_runs_differ_by_zero_but_not_for_certain() -> None:
    scores = {str(place): [place / 50] for place in range(50)}
    comparison = compare(scores, scores)
    unseen = 1 - 0.025 ** (1 / 50)  # the share of samples that none of 50 shows, by Clopper and Pearson
    assert (comparison.mean, comparison.ties, comparison.p_value) == (0, 50, 1)
    assert (comparison.low, comparison.high) == pytest.approx((-unseen, unseen))


def test_differences_tell_the_same_as_the_scores_they_come_from() -> None:
    a, b = {"x": [0.2], "y": [1.0], "z": [0.5]}, {"x": [0.7], "y": [0.4], "z": [0.5]}
    assert difference_of([0.7 - 0.2, 0.4 - 1.0, 0.0]) == compare(a, b)
    assert difference_of([]) is None


def test_trials_in_another_order_are_a_tie() -> None:
    first, second = {"x": [0.1, 0.2]}, {"x": [0.3, 0.0]}
    assert compare(first, second).ties == compare(second, first).ties == 1


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
    difference = difference_of(values.tolist())
    assert difference is not None
    variance = values.var(ddof=1) + np.abs(values).max() ** 2 / 39
    assert difference.detectable == pytest.approx(seen_by(40, variance / 2, 1, 0.8))
    true = difference.detectable or 0.0
    # a share of the samples changes from one end of the scale to the other, which is the worst case of the plan
    changes = (random.normal(0.0, 0.2, (1000, 40)) + (random.random((1000, 40)) < true)).clip(-1, 1)
    sets = (difference_of(row.tolist()) for row in changes)
    assert np.mean([difference is not None and (difference.low or 0) > 0 for difference in sets]) >= 0.78


@given(st.lists(st.sampled_from([-1.0, -0.5, -0.01, 0.0, 0.01, 0.5, 1.0]), min_size=2, max_size=30))
def test_the_p_value_and_the_interval_say_the_same(differences: list[float]) -> None:
    difference = difference_of(differences)
    assert difference is not None
    assert difference.low is not None
    assert difference.high is not None
    assert difference.p_value is not None
    if abs(difference.p_value - 0.05) > 1e-9:
        assert (difference.p_value < 0.05) == (difference.low > 0 or difference.high < 0)


@pytest.mark.parametrize(("losses", "p_value"), [(4, 0.125), (5, 0.0625), (6, 0.03125)])
def test_losses_of_passes_have_the_p_value_of_the_sign_test(losses: int, p_value: float) -> None:
    difference = difference_of([-1.0] * losses + [0.0] * 44)
    assert difference is not None
    assert difference.high is not None
    assert difference.p_value == pytest.approx(p_value)
    assert difference.sign_p_value == pytest.approx(p_value)
    assert (difference.high < 0) == (p_value <= 0.05)


@pytest.mark.parametrize("differences", [[0.5, 0.501], [0.3, 0.3, 0.301], [1.0, 1.0, 1.0], [-0.1] * 5 + [-0.101]])
def test_a_few_like_differences_are_not_certain(differences: list[float]) -> None:
    difference = difference_of(differences)
    assert difference is not None
    assert difference.low is not None
    assert difference.high is not None
    assert difference.p_value is not None
    assert difference.low < 0 < difference.high
    assert difference.p_value > 0.05


def test_a_sample_that_breaks_makes_no_run_look_better() -> None:
    small = difference_of([-0.05] * 100)
    broken = difference_of([-0.05] * 99 + [-1.0])
    assert small is not None
    assert broken is not None
    assert small.high is not None
    assert broken.high is not None
    assert broken.high < small.high < 0


def test_p_values_are_adjusted_by_the_method_of_holm() -> None:
    assert holm([0.01, 0.04, 0.005]) == pytest.approx([0.02, 0.04, 0.015])
    assert holm([0.04, 0.03, 0.005]) == pytest.approx([0.06, 0.06, 0.015])
    assert holm([0.2, 0.6, 0.01] + [0.5] * 5) == pytest.approx([1.0, 1.0, 0.08] + [1.0] * 5)
    assert holm([]) == []


def test_few_pairs_show_no_change_and_more_show_what_their_interval_excludes() -> None:
    assert all(
        difference is None or difference.detectable is None for difference in map(difference_of, ([0.1], [1.0] * 5))
    )
    none = difference_of([0.0] * 20)
    assert none is not None
    assert none.detectable is not None
    assert none.high is not None
    assert none.high < none.detectable < 3 * none.high
    # 6 of 6 have to change, which a share of 0.963 does in 80%
    six = difference_of([1.0] * 6)
    assert six is not None
    assert six.detectable == pytest.approx(0.8 ** (1 / 6), abs=1e-6)
