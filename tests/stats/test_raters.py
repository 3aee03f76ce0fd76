"""Agreement of raters, against worked examples that were published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.stats.agreement import agreement
from vivavoce.stats.raters import Level, counts_of, fleiss, kappa, kappa_interval, krippendorff, krippendorff_interval

RATED = [
    [1, 1, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [5, 5, 5],
    [1, 1],
    [3],
]
"""K. Krippendorff (2011), part C: four observers, some of whom did not rate all of twelve units."""
DIAGNOSES = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)
"""The worked example of Wikipedia's article on Fleiss' kappa: 14 raters, 10 subjects, 5 categories."""


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_is_that_of_the_published_example(level: Level, alpha: float) -> None:
    assert krippendorff(counts_of(RATED, range(1, 6)), level) == pytest.approx(alpha, abs=0.0005)


def test_alpha_of_two_observers_and_two_categories_is_that_of_the_published_example() -> None:
    """K. Krippendorff (2011), part A: ten units."""
    pairs = list(zip("0100000010", "1110010000", strict=True))
    assert krippendorff(counts_of(pairs, "01")) == pytest.approx(0.095, abs=0.0005)


def test_kappa_of_many_is_that_of_the_published_example() -> None:
    assert fleiss(DIAGNOSES) == pytest.approx(0.210, abs=0.0005)


def test_what_cannot_be_computed_is_none() -> None:
    same = counts_of([["a", "a"], ["a", "a"]], "ab")
    assert (fleiss(same), krippendorff(same), krippendorff(same, "ordinal")) == (None, None, None)
    uneven = counts_of([["a", "b"], ["a", "a", "a"]], "ab")
    assert fleiss(uneven) is None
    assert krippendorff(uneven) is not None
    alone = counts_of([["a"], ["b"]], "ab")
    assert (fleiss(alone), krippendorff(alone)) == (None, None)
    nothing = counts_of([], "ab")
    assert (fleiss(nothing), krippendorff(nothing)) == (None, None)


def test_a_rating_outside_the_categories_is_refused() -> None:
    with pytest.raises(ValueError, match="not a category: 'c'"):
        counts_of([["a", "c"]], "ab")


def test_the_interval_holds_alpha_and_is_narrower_with_more_units() -> None:
    few = counts_of(RATED, range(1, 6))
    many = np.tile(few, (10, 1))
    low, high = krippendorff_interval(few, range(len(few))) or (0.0, 0.0)
    assert low < 0.743 < high <= 1
    narrow = krippendorff_interval(many, range(len(many))) or (-1.0, 1.0)
    assert narrow[1] - narrow[0] < (high - low) / 2
    assert krippendorff_interval(few, ["one"] * len(few)) is None


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(PAIRS)
def test_without_weights_and_clusters_it_is_that_of_the_table(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    table = agreement(first, second)
    assert kappa(first, second) == (None if table.kappa is None else pytest.approx(table.kappa))
    interval, expected = kappa_interval(first, second, range(len(pairs))), table.kappa_interval()
    assert interval == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 3)), min_size=1, max_size=20))
def test_a_weight_is_a_pair_that_often(rows: list[tuple[bool, bool, int]]) -> None:
    first, second, weights = [row[0] for row in rows], [row[1] for row in rows], [float(row[2]) for row in rows]
    repeated = [row for row in rows for _ in range(row[2])]
    expected = kappa([row[0] for row in repeated], [row[1] for row in repeated])
    assert kappa(first, second, weights) == (None if expected is None else pytest.approx(expected))


def test_trials_of_one_sample_are_not_independent() -> None:
    first, second = [True, False] * 20, [True, False] * 15 + [False, True] * 5
    apart = kappa_interval(first, second, range(40))
    together = kappa_interval(first, second, [place // 10 for place in range(40)])
    assert apart is not None
    assert together is not None
    assert together[1] - together[0] > apart[1] - apart[0]


def test_weights_that_differ_are_worth_fewer_pairs() -> None:
    first, second = [True, False] * 20, [True, False] * 15 + [False, True] * 5
    even = kappa_interval(first, second, range(40))
    uneven = kappa_interval(first, second, range(40), [1.0, 9.0, 9.0, 1.0] * 10)
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
