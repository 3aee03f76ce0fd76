from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.agreement import Agreement, agreement
from vivavoce.stats.intervals import wilson


def test_pairs_are_counted_by_what_was_said_and_what_is_true() -> None:
    counts = agreement([True, True, True, False, False, False], [True, True, False, True, False, False])
    assert counts == Agreement(tp=2, fp=1, fn=1, tn=2)
    assert counts.n == 6


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
