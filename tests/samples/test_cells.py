from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vivavoce.samples.table import json_cell, read_text, text_cell

plain = st.text(max_size=30)
tricky = st.one_of(
    plain.map(lambda text: f'"{text}"'),
    plain.map(json.dumps),
    plain.map(lambda text: json.dumps(json.dumps(text))),
    st.lists(plain, max_size=2).map(json.dumps),
    st.lists(plain, max_size=2).map(lambda items: json.dumps(json.dumps(items))),
    st.text(alphabet='"\\[]', max_size=8),
)


@given(plain | tricky, st.booleans(), st.booleans())
@example("", False, True)
@example('""', False, False)
@example('"\\"\\""', True, True)
def test_a_text_comes_back_from_its_cell(text: str, lists: bool, empty_is_nothing: bool) -> None:
    cell = text_cell(text, lists=lists, empty_is_nothing=empty_is_nothing)
    assert read_text(cell, lists=lists) == text
    assert cell or not empty_is_nothing


@pytest.mark.parametrize(
    "text", ["007", "2024-05-01", "null", "None", "NaN", '"so he said"', '{"a": 1}', "[see below]"]
)
def test_ordinary_texts_are_their_own_cell(text: str) -> None:
    assert text_cell(text, lists=True) == text
    assert read_text(text, lists=True) == text


def test_a_list_is_found_only_where_there_may_be_one() -> None:
    assert read_text('["a", null]', lists=True) == ["a", None]
    assert read_text('["a", null]') == '["a", null]'
    assert text_cell("[1]", lists=True) == '"[1]"'


def test_the_cell_of_a_list_is_json_without_loss() -> None:
    value: list[Any] = [{"a": 1, "b": None, "ü": "007"}, 1.0, True]
    assert json_cell(value) == '[{"a": 1, "b": null, "ü": "007"}, 1.0, true]'
    with pytest.raises(ValueError, match="JSON"):
        json_cell([float("nan")])
