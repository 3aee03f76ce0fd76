"""Values that are wrong, and still look like what they stand for."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.testing.defects.other_values import Swap, amounts_in, in_place_of, other, swap_in


@given(
    st.integers() | st.floats(-1e6, 1e6) | st.booleans() | st.from_regex(r"[A-Z0-9]{4,9}", fullmatch=True),
    st.integers(),
)
def test_another_value_is_another_and_of_the_same_form(value: object, seed: int) -> None:
    result = other(value, Random(seed))
    assert result != value
    assert type(result) is type(value)
    if isinstance(value, str):
        assert len(str(result)) == len(value)


@given(st.dates(), st.integers())
def test_another_date_is_in_the_same_month(day: object, seed: int) -> None:
    text = str(day)
    result = str(other(text, Random(seed)))
    assert result != text
    assert re.fullmatch(rf"{text[:8]}[0-2]\d", result)


def test_a_number_is_wrong_in_its_first_digit_and_a_code_in_its_last() -> None:
    assert re.fullmatch(r"[2-9],207", str(other("1,207", Random(0))))
    assert re.fullmatch(r"credit_card_73[1-9]", str(other("credit_card_738", Random(0))))
    assert str(other("credit_card_738", Random(0))) != "credit_card_738"


@pytest.mark.parametrize("day", ["May 4", "May 13", "September 28"])
def test_another_day_of_a_named_month_exists(day: str) -> None:
    month, _, number = day.partition(" ")
    for seed in range(20):
        result, _, other_day = str(other(day, Random(seed))).partition(" ")
        assert result == month
        assert 1 <= int(other_day) <= 28
        assert other_day != number


def test_a_value_is_swapped_wherever_it_is_that_text_and_a_number_under_its_key_alone() -> None:
    data = {"id": "A17", "note": "A17 or so", "bags": 2, "seats": 2, "list": [{"ids": ["A17"]}]}
    assert Swap("id", "A17", "A19").within(data) == {**data, "id": "A19", "list": [{"ids": ["A19"]}]}
    assert Swap("bags", 2, 3).within(data) == {**data, "bags": 3}
    assert Swap("bags", 1, 2).within({"bags": True}) == {"bags": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"id": "A17"}), json.dumps({"id": "A19"})),
        ("cancelled A17", "cancelled A19"),
        ("done", "done"),
    ],
)
def test_a_value_is_swapped_in_a_result(text: str, expected: str) -> None:
    assert Swap("id", "A17", "A19").within_text(text) == expected
    assert Swap("id", 17, 19).within_text("cancelled 17") == "cancelled 17"


def test_one_value_of_arguments_is_chosen_that_has_a_wrong_one_of_its_form() -> None:
    arguments = {"why": "changed plans", "flights": [{"date": "2024-05-01"}], "bags": 1, "who": None}
    rows = {swap.key for seed in range(20) if (swap := swap_in(arguments, Random(seed)))}
    assert rows == {"date", "bags"}
    assert swap_in({"why": "changed plans"}, Random(0)) is None


def test_amounts_have_the_sign_of_a_currency() -> None:
    text = "From HAT17 on 2024-05-20 at 13:00: $1,207, €5 or £3.50. Not 12-hour, but 7."
    assert amounts_in(text) == ["1,207", "5", "3.50"]


def test_a_number_is_replaced_where_it_is_no_part_of_another() -> None:
    assert in_place_of("207", "407", "$207, 207.50, 1207, 1,207 and 207.") == "$407, 207.50, 1207, 1,207 and 407."
