from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.agreement import Agreement, agreement, kappa, kappa_interval
from vivavoce.stats.intervals import wilson


def test_pairs_are_counted_by_what_was_said_and_what_is_true() -> None:
    found = agreement([True, True, True, False, False, False], [True, True, False, True, False, False])
    assert found == Agreement(tp=2, fp=1, fn=1, tn=2)
    assert found.n == 6


def test_the_figures_of_a_textbook_table() -> None:
    table = Agreement(tp=20, fp=5, fn=10, tn=15)
    assert (table.precision, table.recall, table.accuracy) == (0.8, 20 / 30, 0.7)
    assert table.kappa == pytest.approx(0.4)


def test_figures_that_would_divide_by_zero_are_none() -> None:
    nothing = agreement([], [])
    assert (nothing.n, nothing.precision, nothing.recall, nothing.accuracy, nothing.kappa) == (
        0,
        None,
        None,
        None,
        None,
    )
    silent = Agreement(tp=0, fp=0, fn=3, tn=2)
    assert (silent.precision, silent.recall) == (None, 0.0)
    assert Agreement(tp=0, fp=2, fn=0, tn=2).recall is None
    assert Agreement(tp=4, fp=0, fn=0, tn=0).kappa is None


@given(st.lists(st.booleans(), min_size=2).filter(lambda truth: len(set(truth)) == 2))
def test_a_perfect_prediction_has_kappa_one_and_its_opposite_none_above_zero(truth: list[bool]) -> None:
    assert agreement(truth, truth).kappa == 1
    opposite = agreement([not value for value in truth], truth).kappa
    assert opposite is not None
    assert opposite < 0


def test_both_sides_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="shorter"):
        agreement([True, False], [True])


def test_the_interval_of_kappa_is_that_of_the_agreement_with_chance_taken_out() -> None:
    table = Agreement(tp=20, fp=5, fn=10, tn=15)  # by chance half of the pairs agree
    low, high = wilson(35, 50)
    assert table.kappa_interval() == pytest.approx(((low - 0.5) / 0.5, (high - 0.5) / 0.5))


def test_pairs_that_all_agree_are_no_certainty() -> None:
    interval = Agreement(tp=5, fp=0, fn=0, tn=5).kappa_interval()
    assert interval is not None
    assert interval == (pytest.approx(0.445, abs=1e-3), 1.0)


@given(st.tuples(*[st.integers(0, 30)] * 4))
def test_kappa_lies_within_its_interval_and_that_between_the_ends_of_the_scale(counts: tuple[int, ...]) -> None:
    table = Agreement(*counts)
    interval = table.kappa_interval()
    assert (interval is None) == (table.kappa is None)
    if interval is not None and table.kappa is not None:
        assert -1 <= interval[0] <= table.kappa + 1e-12
        assert table.kappa - 1e-12 <= interval[1] <= 1


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(PAIRS)
def test_without_weights_and_clusters_it_is_that_of_the_table(pairs: list[tuple[bool, bool]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    table = agreement(one, other)
    assert kappa(one, other) == (None if table.kappa is None else pytest.approx(table.kappa))
    found, expected = kappa_interval(one, other, range(len(pairs))), table.kappa_interval()
    assert found == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 3)), min_size=1, max_size=20))
def test_a_weight_is_a_pair_that_often(rows: list[tuple[bool, bool, int]]) -> None:
    one, other, weights = [row[0] for row in rows], [row[1] for row in rows], [float(row[2]) for row in rows]
    repeated = [row for row in rows for _ in range(row[2])]
    expected = kappa([row[0] for row in repeated], [row[1] for row in repeated])
    assert kappa(one, other, weights) == (None if expected is None else pytest.approx(expected))


def test_trials_of_one_sample_are_not_independent() -> None:
    one, other = [True, False] * 20, [True, False] * 15 + [False, True] * 5
    apart = kappa_interval(one, other, range(40))
    together = kappa_interval(one, other, [place // 10 for place in range(40)])
    assert apart is not None
    assert together is not None
    assert together[1] - together[0] > apart[1] - apart[0]


def test_weights_that_differ_are_worth_fewer_pairs() -> None:
    one, other = [True, False] * 20, [True, False] * 15 + [False, True] * 5
    even = kappa_interval(one, other, range(40))
    uneven = kappa_interval(one, other, range(40), [1.0, 9.0, 9.0, 1.0] * 10)
    assert even is not None
    assert uneven is not None
    assert uneven[1] - uneven[0] > even[1] - even[0]


def test_nothing_has_no_kappa() -> None:
    assert kappa([], []) is None
    assert kappa_interval([], [], []) is None


@pytest.mark.parametrize("label", [True, False])
def test_labels_of_one_kind_have_no_kappa_whatever_the_judge_says(label: bool) -> None:
    labels, verdicts = [label] * 5, [True, True, False, True, True]
    assert kappa(verdicts, labels) is None
    assert kappa_interval(verdicts, labels, range(5)) is None
    assert agreement(verdicts, labels).kappa is None
    assert agreement(verdicts, labels).kappa_interval() is None
    assert kappa(labels, verdicts) == pytest.approx(0)  # a judge that passes everything, or nothing
    assert agreement(labels, verdicts).kappa == 0
