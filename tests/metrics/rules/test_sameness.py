from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.rules.sameness import alike, mentions


@pytest.mark.parametrize(("a", "b"), [("A-17", " A-17"), (1042, "1042"), (7, 7.0), ("7", 7.0), ([1, 2], [1, 2])])
def test_the_same_thing_may_be_written_as_number_or_as_text(a: Any, b: Any) -> None:
    assert alike(a, b)
    assert alike(b, a)


@pytest.mark.parametrize(("a", "b"), [("A-17", "A-1"), (1, True), ("true", True), (None, "null"), ([1], "[1]")])
def test_other_things_are_not_the_same(a: Any, b: Any) -> None:
    assert not alike(a, b)
    assert not alike(b, a)


def test_a_message_mentions_whole_words_in_any_case() -> None:
    assert mentions("my order a-17, please", "A-17")
    assert mentions("order 1042.", 1042)
    assert not mentions("order A-170", "A-17")
    assert not mentions("order 11042", 1042)
    assert not mentions("anything", "")
    assert not mentions("True", True)


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        (24, "You get 24.00 euros.", True),
        (24, "You get 24.90 euros.", False),
        (24, "You get 24,000 euros.", False),
        (24.9, "You get 24.90 euros.", True),
        (24.9, "You get 24.95 euros.", False),
        ("1", "You get 1,000.", False),
        ("1", "1, 2 and 3.", True),
        (900, "You get 24,900.", False),
    ],
)
def test_a_number_that_is_mentioned_is_no_part_of_another(value: Any, text: str, found: bool) -> None:
    assert mentions(text, value) is found
