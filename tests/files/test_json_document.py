"""JSON documents read piece by piece are what they are when they are read whole."""

from __future__ import annotations

import io
import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.files import json_document
from vivavoce.files.json_document import ENOUGH, BrokenDocument, JsonDocument, head_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def document(text: str | bytes) -> JsonDocument:
    return JsonDocument(io.BytesIO(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text))


@given(st.lists(values, max_size=6), st.sampled_from([None, 0, 2]), st.integers(1, 40), st.booleans())
def test_items_are_the_same_in_pieces_of_any_size(
    items: list[Any], indent: int | None, size: int, escaped: bool
) -> None:
    text = f" {json.dumps(items, indent=indent, ensure_ascii=escaped)}\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_document, "_PIECE", size)
        rows = list(document(text.encode("utf-8", "replace")).items())
    expected = json.loads(text.encode("utf-8", "replace"))
    assert repr([item for _, item in rows]) == repr(expected)
    assert [line for line, _ in rows] == sorted(line for line, _ in rows)


def test_a_list_within_objects_is_found_and_what_stands_beside_it_kept() -> None:
    read = document(
        '{"version": 3, "results": {"at": [1], "results": [{"a": 1},\n {"a": 2}], "after": 0}, "end": null}'
    )
    assert list(read.items(("runs",), ("results", "results"))) == [(1, {"a": 1}), (2, {"a": 2})]
    assert read.beside == {"version": 3, "results": {"at": [1], "after": 0}, "end": None}


def test_a_document_without_such_a_list_is_the_only_item() -> None:
    for text in (
        '{"results": {"row": []}, "b": 1}',
        '{"results": {"results": {}}}',
        '{"results": {}}',
        "{}",
        "7",
        '"a"',
    ):
        assert list(document(text).items(("results", "results"))) == [(1, json.loads(text))]


@pytest.mark.parametrize(
    ("text", "rule", "column"),
    [
        ("", "Expecting value", 1),
        ('{"a": 1,}', "Expecting value", 9),
        ('{"a" 1}', "':' is missing", 6),
        ('{"a": 1, "a": 2}', "'a' occurs twice", 13),
        ("{1: 2}", "a key must be a string", 3),
        ("[1 2]", "',' or ']' is missing", 4),
        ("[1, 2", "',' or ']' is missing", 6),
        ("[1,]", "Expecting value", 4),
        ("[,1]", "Expecting value", 2),
        ("[1] 2", "text after the end", 5),
        ("[", "Expecting value", 2),
        ('[1, {"a": NaN}]', "NaN", 5),
        ("[1, " + "[" * 201 + "]" * 202, "nested too deeply", 5),
        ('["cut off', "Unterminated string", 2),
    ],
)
def test_a_broken_list_says_what_and_where(text: str, rule: str, column: int) -> None:
    with pytest.raises(BrokenDocument, match=rule) as caught:
        list(document(text).items())
    assert (caught.value.line, caught.value.column) == (1, column)


def test_bytes_that_are_not_utf8_have_their_place() -> None:
    with pytest.raises(BrokenDocument, match="byte 0xff") as caught:
        list(document(b'[1,\n "\xff"]').items())
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_a_broken_item_in_the_middle_is_told_without_reading_the_rest() -> None:
    class Counting(io.BytesIO):
        read_bytes = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.read_bytes += len(data)
            return data

    file = Counting(b'[{"a" 1},' + b' {"a": 1},' * 1_000_000 + b" 1]")
    with pytest.raises(BrokenDocument):
        list(JsonDocument(file).items())
    assert file.read_bytes < 2_000_000


items = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(items), st.integers(1, 200))
def test_of_a_list_it_has_the_first_items_and_the_first_one_may_be_cut(items: list[Any], enough: int) -> None:
    whole = json.dumps(items, ensure_ascii=False).encode()
    head = json.loads(head_of(BytesIO(whole), enough))
    assert head[1:] == items[1 : len(head)]
    assert bool(head) == bool(items)
    if len(head) > 1 or len(whole) < enough:
        assert head[:1] == items[:1]
    if head != items:
        assert len(whole) >= enough


@given(items, st.integers(1, 200))
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
