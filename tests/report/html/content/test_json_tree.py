from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.html.content.json_tree import json_html, json_leaves, json_tree

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def html(text: str) -> str:
    tree = json_tree(text, 20_000)
    assert tree is not None
    return str(json_html(tree, ()))


def without_tags(html_text: str) -> str:
    while '<div class="inner"' in html_text:  # JSON in strings is shown beside the string
        html_text = re.sub(r'<div class="inner".*', "", html_text)
    html_text = re.sub(r'<span class="unseen">U\+([0-9A-F]{4})</span>', lambda match: chr(int(match[1], 16)), html_text)
    return unescape(re.sub(r"<[^>]*>", "", html_text))


@given(st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4), st.booleans())
def test_what_is_written_is_the_same_json_again(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    html_text = html(text)
    if '<div class="inner"' not in html_text and "\\ud" not in text and text.isprintable():
        assert json.loads(without_tags(html_text)) == value
    tree = json_tree(text, 20_000)
    assert tree is not None
    assert all(not leaf.verbatim or text[leaf.start : leaf.end] == leaf.text for leaf in json_leaves(tree))


@pytest.mark.parametrize(
    "text", ["", "1", '"x"', "{", "[1,]", "{'a': 1}", "Error: no", "[" * 100_000, "[" * 500 + "]" * 500]
)
def test_what_is_no_json_object_or_array_is_no_tree(text: str) -> None:
    assert json_tree(text, 20_000) is None


def test_html_in_keys_is_text() -> None:
    assert "<script" not in html('{"<script>xss()</script>": ["<img src=x onerror=xss()>"]}')


def test_json_in_a_string_is_shown_as_such() -> None:
    html_text = html(json.dumps({"body": json.dumps({"a": [1, 2]})}))
    assert 'data-what="JSON in this string"' in html_text
    assert "[1, 2]" in unescape(re.sub(r"<[^>]*>", "", html_text))


def test_what_holds_more_than_a_line_can_be_folded() -> None:
    html_text = html(json.dumps({"order": {f"key {i}": "some words" for i in range(9)}}))
    assert '<details open><summary data-count="9">' in html_text
    assert "<details><summary" in html(json.dumps({"many": list(range(1000, 1100))}))


def test_a_control_character_stays_an_escape() -> None:
    assert "\\u001b[31m" in html('["\\u001b[31mred"]')
