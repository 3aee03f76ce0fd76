from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.agreement import agreement
from vivavoce.stats.kappa import kappa, kappa_interval

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
