from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from vivavoce.comparing.json_values import same_json
from vivavoce.errors import GraderFault, UsageError
from vivavoce.metrics.exact.arguments import read_matcher

numbers = st.integers() | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("a", "b"), [(1, "1"), (True, 1), (False, 0), (None, 0), ("", None), ([1, 2], [2, 1]), ([True], [1]), ({}, [])]
)
def test_values_of_different_types_or_order_differ(a: JsonValue, b: JsonValue) -> None:
    assert not same_json(a, b)
    assert not same_json(b, a)


def test_a_whole_number_equals_its_decimal_spelling_and_key_order_is_free() -> None:
    assert same_json({"x": 1, "y": [2.0]}, {"y": [2], "x": 1.0})


def test_large_whole_numbers_are_not_rounded() -> None:
    assert not same_json(2**53 + 1, float(2**53))


def test_nesting_deeper_than_the_call_stack_is_compared() -> None:
    def nest(core: JsonValue) -> JsonValue:
        for _ in range(5000):
            core = [core]
        return core

    assert same_json(nest(1), nest(1.0))
    assert not same_json(nest(1), nest("1"))


@given(values)
def test_every_value_equals_its_own_copy(value: JsonValue) -> None:
    assert same_json(value, json.loads(json.dumps(value)))


@given(values, values)
def test_equality_is_symmetric_and_stricter_than_python(a: JsonValue, b: JsonValue) -> None:
    assert same_json(a, b) == same_json(b, a)
    assert not same_json(a, b) or a == b


@pytest.mark.parametrize("spec", ["exact", "subset", "casefold", "unordered", {"fuzzy": 0.9}, {"tolerance": 0}])
@given(value=values)
def test_every_matcher_but_regex_accepts_an_equal_value(spec: object, value: JsonValue) -> None:
    assert read_matcher(spec, "x").agrees(value, value)


@pytest.mark.parametrize(
    ("spec", "actual", "wanted", "agrees"),
    [
        ("casefold", "STRASSE", "Straße", True),
        ("casefold", "Mia", "Mía", False),
        ("casefold", 1, "1", False),
        ("unordered", [2, 1, 1], [1, 2, 1], True),
        ("unordered", [1, 2, 2], [1, 1, 2], False),
        ("unordered", [True], [1], False),
        ("unordered", [1], [1, 1], False),
        ({"fuzzy": 0.8}, "refund the order", "refund the ordr", True),
        ({"fuzzy": 0.8}, "refund", "cancel", False),
        ({"fuzzy": 0.8}, 1, 1.0, True),
        ({"tolerance": 0.1}, 1.1, 1, True),
        ({"tolerance": 0.1}, 1.11, 1, False),
        ({"tolerance": 0.01}, 10.01, 10, True),
        ({"tolerance": 5}, True, 1, False),
        ({"tolerance": 5}, "1", 1, False),
        ({"tolerance": 5}, float("inf"), 1, False),
        ({"tolerance": 5}, float("inf"), float("inf"), False),
        ({"regex": r"\d{4}-\d{2}"}, "2024-05", "anything", True),
        ({"regex": r"\d{4}-\d{2}"}, "on 2024-05", "on 2024-05", False),
        ({"regex": r"\d+"}, 12, 12, False),
    ],
)
def test_a_matcher_decides(spec: object, actual: JsonValue, wanted: JsonValue, agrees: bool) -> None:
    assert read_matcher(spec, "x").agrees(actual, wanted) is agrees


def test_a_pattern_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.1)
    with pytest.raises(GraderFault, match=r"took longer than 0\.1 s"):
        read_matcher({"regex": "(a|aa)+"}, "x").agrees("a" * 60 + "!", None)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("fuzy", "no matcher 'fuzy'; did you mean 'fuzzy'?"),
        ("fuzzy", "fuzzy needs a value"),
        ({"fuzzi": 1}, "no matcher 'fuzzi' with a value; did you mean 'fuzzy'?"),
        ({"fuzzy": 0.5, "regex": "x"}, "a matcher is a name"),
        (7, "a matcher is a name"),
        ({"fuzzy": 80}, "fuzzy: a similarity is above 0 and at most 1, got 80"),
        ({"fuzzy": True}, "a similarity is above 0"),
        ({"tolerance": -1}, "tolerance: a tolerance is a number of at least 0, got -1"),
        ({"tolerance": float("nan")}, "a tolerance is a number"),
        ({"regex": "("}, "regex: '(' is not a regular expression"),
        ({"regex": 5}, "a regular expression is text"),
    ],
)
def test_a_wrong_matcher_is_named_with_its_place(spec: object, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_matcher(spec, "arguments.note")
    assert str(caught.value).startswith("arguments.note")
    assert said in str(caught.value)
