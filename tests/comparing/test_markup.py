"""What a page shows instead of markup, in linear time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.markup import hidden_markup, link_marks


def shown(text: str) -> str:
    """Return a text with the replacements of its markup."""
    parts: list[str] = []
    place = 0
    for mark in hidden_markup(text):
        parts += [text[place : mark.start], mark.shown]
        place = mark.end
    return "".join([*parts, text[place:]])


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("se<b>cr</b>et", "secret"),
        ("se<wbr/>cret<br>now", "secret now"),
        ("a <a href=\"x>y\" class='z'>link</a>.", "a link."),
        ("a<!-- <b>not</b> shown -->b <!-- open", "ab <!-- open"),
        ("&lt;b&gt; &amp;shy; &#115;&#x65; &nosuch;", "<b> \u00ad se &nosuch;"),
        ('[text](https://x.org/(a)_b "title") ![alt](i.png)', "text alt"),
        ("[1] and [a](b", "[1] and [a](b"),
        (r"\[a](b)", r"\[a](b)"),
        ("- one\n2. two\n> ## three\n- - four", "one\ntwo\nthree\nfour"),
        ("| a | b |", " a b "),
        ("==a== ||b||", "a b"),
        ("-5 and a < b, c > d", "-5 and a < b, c > d"),
        ("", ""),
    ],
)
def test_what_a_page_shows(text: str, page: str) -> None:
    assert shown(text) == page


def test_only_links_have_marks_of_links() -> None:
    text = "[a [b](c) d](e)"
    assert [text[mark.start : mark.end] for mark in link_marks(text)] == ["[", "[", "](c)", "](e)"]


@given(st.text("<>!-/ab&#;[]()| \n*\"'x1=", max_size=60) | st.text(max_size=30))
def test_marks_are_in_order_and_in_the_text(text: str) -> None:
    marks = hidden_markup(text)
    assert all(0 <= mark.start < mark.end <= len(text) for mark in marks)
    assert all(left.end <= right.start for left, right in pairwise(marks))


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a",
        "<a ",
        "<a '",
        '<a "',
        "<!--",
        "<!-- -->",
        "&",
        "&amp;",
        "&a",
        "[",
        "](",
        "[a](b",
        "](a(",
        "|",
        "=",
        "- ",
        "> ",
        "1. ",
    ],
)
def test_a_hostile_text_is_read_in_linear_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    assert all(left.end <= right.start for left, right in pairwise(hidden_markup(text)))
