"""The beginning of a long document is a document itself, with the first items of its list."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.files.json_head import ENOUGH, head_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(values), st.integers(1, 200))
def test_of_a_list_it_has_the_first_items_and_the_first_one_may_be_cut(items: list[Any], enough: int) -> None:
    whole = json.dumps(items, ensure_ascii=False).encode()
    head = json.loads(head_of(BytesIO(whole), enough))
    assert head[1:] == items[1 : len(head)]
    assert bool(head) == bool(items)
    if len(head) > 1 or len(whole) < enough:
        assert head[:1] == items[:1]
    if head != items:
        assert len(whole) >= enough


@given(values, st.integers(1, 200))
def test_it_is_a_document_always(value: Any, enough: int) -> None:
    json.loads(head_of(BytesIO(json.dumps(value).encode()), enough))


def test_what_stands_before_a_list_within_objects_is_there() -> None:
    items = [{"said": ["a, [b", 'c"]}']}, {"said": ["d"]}] * 20
    text = json.dumps({"status": {"tags": ["x", "y"]}, "eval": {"samples": items}, "after": 1}).encode()
    head = json.loads(head_of(BytesIO(text), 300))
    assert head["status"] == {"tags": ["x", "y"]}
    assert head["eval"]["samples"] == items[: len(head["eval"]["samples"])] != items
    assert "after" not in head


def test_no_more_is_read_than_is_needed() -> None:
    item = json.dumps({"content": "word " * 1000}).encode()
    long = BytesIO(b"[" + b",".join([item] * 3000) + b"]")
    head = head_of(long)
    assert long.tell() == ENOUGH < len(long.getvalue())
    assert len(json.loads(head)) > 100
    large = BytesIO(json.dumps(["x" * 3 * ENOUGH, 1, 2]).encode())
    assert json.loads(head_of(large))[0] == "x" * 3 * ENOUGH


@pytest.mark.parametrize("broken", ["[1, 2", '{"a": [1, 2, ', '["a', "]]]", "[}, 1, 2]", '{"a" "b", [', "", "x, y"])
def test_what_is_broken_is_left_for_the_reader_to_tell(broken: str) -> None:
    data = broken.encode()
    assert head_of(BytesIO(data)) == data
    head_of(BytesIO(data * 3), 4)
