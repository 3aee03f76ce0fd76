"""Values are looked up as whole words of one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.words import Words


@pytest.mark.parametrize(
    ("value", "text", "stands"),
    [
        ("4711", "It is 4711.", True),
        ("4711", "It is 47112.", False),
        ("bob", "I am Bob's aunt", True),
        ("Иван", "Это Иванов", False),
        ("東京", "私は東京にいます", True),
        ("4‑7", "room 4-7", True),
        ("...", "so ... what", False),
        ("", "anything", False),
        ("a.c", "abc", False),
        ("two  words", "Two\nwords", True),
    ],
)
def test_a_value_stands_in_a_text_as_whole_words(value: str, text: str, stands: bool) -> None:
    assert Words(["other", text]).hold(value) is stands


@given(st.text(), st.text(alphabet="abc123.+ \n", min_size=1), st.text())
def test_what_was_said_between_spaces_is_found(before: str, value: str, after: str) -> None:
    assert Words([f"{before} {value} {after}"]).hold(value) is any(map(str.isalnum, value))


def test_no_value_is_found_across_two_texts() -> None:
    words = Words(["order 10", "42 mugs"])
    assert not words.hold("10 42")
    assert not words.hold("10\n42")
    assert words.hold("42  MUGS")
