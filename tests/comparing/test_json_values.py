from __future__ import annotations

import copy
import json
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.json_values import (
    BrokenJson,
    decode_exact_from,
    decode_from,
    json_key,
    parse,
    read_strict_json,
    same_json,
)
from vivavoce.messages import read_messages
from vivavoce.records.trajectory import tool_calls

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_good_json_is_read_as_python_reads_it(value: Any) -> None:
    text = json.dumps(value)
    assert repr(parse(text)) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("text", "rule", "offset"),
    [
        ('{"a": NaN}', "NaN is not a JSON number", None),
        ("[-Infinity]", "-Infinity is not a JSON number", None),
        ('{"a": 1, "a": 1}', "the key 'a' occurs twice", None),
        ('[{"b": {"a": 1, "c": 2, "a": 3}}]', "the key 'a' occurs twice", None),
        ("[1e999]", "the number 1e999 is too large", None),
        ('{"a": 1', "not valid JSON: Expecting ',' delimiter", 7),
        ("", "not valid JSON: Expecting value", 0),
        ("{} {}", "not valid JSON: Extra data", 3),
        ("[" * 100_000, "nested too deeply", None),
        ("[" * 201 + "]" * 201, "nested too deeply: more than 200 levels", None),
        ("9" * 5000, "not valid JSON: Exceeds the limit", None),
    ],
)
def test_bad_json_says_what_and_where(text: str, rule: str, offset: int | None) -> None:
    with pytest.raises(BrokenJson, match=rule) as caught:
        parse(text)
    assert caught.value.offset == offset


def test_what_is_read_can_be_nested_two_hundred_levels_deep() -> None:
    text = "[" * 200 + "]" * 200
    assert json.dumps(parse(text)) == text
    assert parse("[[]" + ",[]" * 500 + "]") == [[]] * 501


def shuffle_keys(value: Any) -> Any:
    """Return an equal value whose objects name their keys in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffle_keys(part) for key, part in reversed(cast("dict[str, Any]", value).items())}
    return [shuffle_keys(part) for part in cast("list[Any]", value)] if isinstance(value, list) else value


@given(values)
def test_a_value_is_the_same_as_its_copy_in_any_order_of_keys(value: Any) -> None:
    assert same_json(value, shuffle_keys(copy.deepcopy(value)))


@given(values, values)
def test_equality_is_symmetric_and_means_what_the_text_says(a: Any, b: Any) -> None:
    assert same_json(a, b) == same_json(b, a) == (json_key(a) == json_key(b))
    if same_json(a, b):
        assert same_json([a, {"key": a}], [b, {"key": b}])


@pytest.mark.parametrize(
    ("a", "b"),
    [(100, 100.0), (1e2, 100), (0, -0.0), (0.1, 0.10), ([1, {"a": 5}], [1.0, {"a": 5.0}]), (120, 1.2e2), (-5e-1, -0.5)],
)
def test_equal_values_have_one_key(a: Any, b: Any) -> None:
    assert same_json(a, b)
    assert json_key(a) == json_key(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [(1, True), (1, "1"), (None, "null"), ([1, 2], [2, 1]), (10, 1), (0.1, 1), (["a,b"], ["a", "b"])],
)
def test_different_values_have_different_keys(a: Any, b: Any) -> None:
    assert not same_json(a, b)
    assert json_key(a) != json_key(b)


@given(st.integers(-(10**14), 10**14), st.integers(0, 6))
def test_a_number_is_the_decimal_that_it_is_written_as(digits: int, places: int) -> None:
    number = Decimal(digits).scaleb(-places)
    assert same_json(read_strict_json(str(number)), read_strict_json(f"{number:f}000" if places else str(number)))
    assert same_json(read_strict_json(str(number)), number)
    assert not same_json(read_strict_json(str(number)), number + Decimal(1).scaleb(-places))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("100", "100.0", True),
        ("100", "1e2", True),
        ("0.30", "0.3", True),
        ("-0", "0.0", True),
        ("9007199254740993", "9007199254740992.0", False),
        ("1", '"1"', False),
        ("1", "true", False),
        ("0", "false", False),
        ("0", "null", False),
        ('""', "null", False),
        ('{"a": 1, "b": [1.0, {"c": null}]}', '{"b": [1, {"c": null}], "a": 1.0}', True),
        ('{"a": null}', "{}", False),
        ("[1, 2]", "[2, 1]", False),
        ('"a"', '"A"', False),
        ('{"a": [true]}', '{"a": [1]}', False),
    ],
)
def test_two_texts_hold_the_same_value(a: str, b: str, same: bool) -> None:
    assert same_json(read_strict_json(a), read_strict_json(b)) is same
    assert same_json(read_strict_json(b), read_strict_json(a)) is same


@pytest.mark.parametrize(
    "number",
    [
        "9007199254740993.0",
        "9007199254740993e0",
        "0.10000000000000000001",
        "1e-400",
        "-1e-400",
        "24.900000000000000001",
        "1e-99999999999999999999",
        "1.0000000000000000000000001",
    ],
)
def test_a_number_that_cannot_be_compared_exactly_is_refused(number: str) -> None:
    with pytest.raises(BrokenJson, match="has too many digits to compare"):
        read_strict_json(f'{{"a": [{number}]}}')
    with pytest.raises(BrokenJson, match="has too many digits to compare"):
        decode_exact_from(f"see [{number}]", 4)
    assert parse(number) == float(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_is_written_as_short_as_possible_is_read(number: float) -> None:
    assert read_strict_json(json.dumps(number)) == number


@pytest.mark.parametrize(
    "number", ["0.1", "24.90", "1e3", "100.0", "0.30000000000000004", "0.0", "-0.0", "0e5", "5E-324"]
)
def test_an_ordinary_number_is_read(number: str) -> None:
    assert same_json(read_strict_json(number), Decimal(number))


def test_deep_values_are_compared_and_nan_is_not_the_same_as_itself() -> None:
    deep: list[Any] = []
    other: list[Any] = []
    for _ in range(50_000):
        deep, other = [deep], [other]
    assert same_json(deep, other)
    assert not same_json([deep], other)
    assert not same_json(float("nan"), float("nan"))


def test_readers_of_rows_round_long_fractions_and_keep_long_whole_numbers() -> None:
    assert parse("0.10000000000000000001") == 0.1
    assert decode_from('{"a": 0.10000000000000000001}', 0)[0] == {"a": 0.1}
    assert parse("9007199254740993") == 9007199254740993
    flat = {"role": "assistant", "tool_calls": [{"id": "1", "name": "pay", "arguments": {"amount": 0.1}}]}
    row = parse(json.dumps(flat).replace("0.1}", "0.10000000000000000001}"))
    (recorded,) = tool_calls(read_messages([row]))
    assert recorded.args == {"amount": 0.1}


def test_what_a_target_writes_is_never_rounded() -> None:
    (call,) = tool_calls(read_messages([_call('{"amount": 0.10000000000000000001}')]))
    with pytest.raises(ValueError, match="too many digits to compare"):
        _ = call.args
    with pytest.raises(BrokenJson, match="too many digits to compare"):
        read_strict_json("0.10000000000000000001")


def _call(arguments: str) -> dict[str, Any]:
    function = {"name": "pay", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
