from __future__ import annotations

import json
import math
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.strict_json import strict_json
from vivavoce.safe_text import encodable

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


@given(VALUES)
def test_every_value_comes_back_as_it_was_from_one_line_of_utf_8(value: object) -> None:
    text = strict_json(value)
    assert "\n" not in text
    assert json.loads(text.encode("utf-8"), parse_constant=refuse) == value


@pytest.mark.parametrize("beside", ["plain", "\ud800"])
@pytest.mark.parametrize(("number", "written"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_a_number_that_json_does_not_know_is_written_as_text(number: float, written: str, beside: str) -> None:
    assert json.loads(strict_json({"n": [number], "t": beside}), parse_constant=refuse)["n"] == [written]


@given(VALUES, st.text(st.characters(categories=["Cs"]), min_size=1))
def test_half_a_character_is_written_as_its_escape_and_changes_nothing_else(value: object, half: str) -> None:
    read = json.loads(strict_json({half: [half], "beside": value}).encode(), parse_constant=refuse)
    assert read == {encodable(half): [encodable(half)], "beside": value}
    assert encodable(half).startswith("\\ud")


def test_an_object_that_json_does_not_know_is_written_as_its_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert strict_json({"a": Odd()}) == '{"a":"odd"}'
