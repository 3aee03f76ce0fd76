from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.agreement import Agreement, agreement


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
