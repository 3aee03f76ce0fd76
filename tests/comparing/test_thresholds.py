"""Thresholds: decimals compare as decimals, and what is printed compares as the numbers do."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.thresholds import (
    Operator,
    compare,
    exact,
    limit_text,
    mean,
    number_text,
    percentile,
    reaches,
    round_toward_side,
    share_text,
)
from vivavoce.stats.intervals import percentile as interpolated

DECIMALS = st.decimals(0, 1, places=4).map(float)
SHARES = st.floats(0, 1, allow_subnormal=False)
OPERATORS: tuple[Operator, ...] = ("gt", "gte", "lt", "lte", "eq")


@given(st.integers(-(10**12) + 1, 10**12 - 1), st.integers(0, 12))
def test_a_float_of_at_most_12_digits_is_that_decimal(digits: int, places: int) -> None:
    decimal = Decimal(digits).scaleb(-places)
    assert exact(float(decimal)) == Fraction(decimal)


@given(st.integers(0, 200), st.integers(1, 200))
def test_a_quotient_of_whole_numbers_is_that_fraction(part: int, whole: int) -> None:
    assert exact(part / whole) == Fraction(part, whole)


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        (0.1 + 0.2, Fraction(3, 10)),
        (1 - 0.9, Fraction(1, 10)),
        (0.6 + 0.3 + 0.1, Fraction(1)),
        (200 / 3, Fraction(200, 3)),
        (0.12345678901234, Fraction(12345678901234, 10**14)),
        (sum([0.7] * 50) / 50, Fraction(7, 10)),
        (2.0**60, Fraction(2**60)),
        (2**60 + 1, Fraction(2**60 + 1)),
        (5e-324, Fraction(Decimal("4.9406564584125e-324"))),
    ],
)
def test_a_computed_float_is_the_number_that_it_was_meant_to_be(computed: float, expected: Fraction) -> None:
    assert exact(computed) == expected


@given(SHARES)
def test_reading_keeps_the_order_of_floats(value: float) -> None:
    above = math.nextafter(value, 2)
    assert exact(value) <= exact(above)
    assert abs(exact(value) - Fraction(value)) <= Fraction(value) * Fraction(1, 10**13)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_exact_value_and_compares_as_a_float(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        exact(value)
    assert compare(value, "gte", 0.5) is (value >= 0.5)
    assert compare(0.5, "lt", value) is (value > 0.5)


@given(st.lists(DECIMALS, min_size=1, max_size=9), st.data())
def test_a_mean_is_that_of_the_decimals(values: list[float], data: st.DataObject) -> None:
    numbers = [Fraction(Decimal(repr(value))) for value in values]
    assert mean(values) == sum(numbers) / len(numbers)
    weights = data.draw(
        st.lists(st.decimals("0.01", 9, places=2).map(float), min_size=len(values), max_size=len(values))
    )
    heavy = [Fraction(Decimal(repr(weight))) for weight in weights]
    assert mean(values, weights) == sum(w * n for w, n in zip(heavy, numbers, strict=True)) / sum(heavy)


@given(SHARES, st.integers(1, 40), st.lists(st.floats(1e-3, 1e3), min_size=40, max_size=40))
def test_a_mean_of_equal_scores_equals_each_of_them_for_every_weight(
    value: float, count: int, weights: list[float]
) -> None:
    for whole in (mean([value] * count), mean([value] * count, weights[:count])):
        operators = {op for op in OPERATORS if compare(whole, op, value)}
        assert operators == {"gte", "lte", "eq"}


def test_a_mean_of_nothing_is_refused() -> None:
    for values, weights in (([], None), ([1.0], [0.0])):
        with pytest.raises(ValueError, match="weight above 0"):
            mean(values, weights)


@given(st.lists(DECIMALS, min_size=1, max_size=9), st.sampled_from([0, 50, 95, 99, 100]))
def test_a_percentile_is_the_one_of_the_statistics(values: list[float], q: int) -> None:
    assert float(percentile(values, q)) == pytest.approx(interpolated(values, q))


@given(SHARES, SHARES)
def test_reaching_is_the_comparison_or_equal(value: float, threshold: float) -> None:
    assert reaches(value, threshold) is compare(value, "gte", threshold)
    assert reaches(value, threshold) is not compare(value, "lt", threshold)


NEAR = st.sampled_from([-1e-3, -1e-5, -1e-9, -1e-13, 0.0, 1e-13, 1e-9, 1e-5, 1e-3])


@given(DECIMALS, NEAR, st.sampled_from([None, 2, 3]))
def test_what_is_printed_is_on_the_same_side_of_the_limit(limit: float, apart: float, decimals: int | None) -> None:
    value = limit + apart
    printed = float(number_text(value, limit, decimals=decimals))
    assert [compare(printed, op, float(limit_text(limit))) for op in OPERATORS] == [
        compare(value, op, limit) for op in OPERATORS
    ]


@given(DECIMALS, st.integers(1, 10**30), st.sampled_from([-1, 0, 1]))
def test_what_is_stored_is_on_the_same_side_of_the_limit(limit: float, apart: int, side: int) -> None:
    value = exact(limit) + Fraction(side, apart)
    stored = round_toward_side(value, limit)
    assert [compare(stored, op, limit) for op in OPERATORS] == [compare(value, op, limit) for op in OPERATORS]


def test_numbers_have_4_digits_unless_that_hides_their_side() -> None:
    assert number_text(2 / 3, 0.5) == "0.6667"
    assert number_text(0.69996, 0.7) == "0.69996"
    assert number_text(0.7, 0.7) == "0.7"
    assert number_text(99.99996, 100) == "99.99996"
    assert number_text(0.7, 0.8, decimals=2) == "0.70"


def test_a_share_is_100_percent_only_where_all_pass() -> None:
    assert [share_text(share) for share in (1.0, 0.9999, 0.5, 0.0001, 0.0)] == [
        "100.0%",
        "99.99%",
        "50.0%",
        "0.01%",
        "0.0%",
    ]
