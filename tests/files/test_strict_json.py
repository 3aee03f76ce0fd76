from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.files.strict_json import BrokenJson, parse

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
