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
        (1042, "订单1042已退款。", True),
        ("1042", "주문 1042는 환불되었습니다", True),
        ("A-17", "注文A-17は返金済みです", True),
        ("Säure", "Sa\u0308ure", True),
        ("A-17", "order A-17-B", False),
        ("A-17", "order X-A-17", False),
        ("A-17", "order A-17-", True),
    ],
)
def test_a_value_is_mentioned_in_any_script_and_encoding(value: Any, text: str, found: bool) -> None:
    assert mentions(text, value) is found


def test_arguments_that_differ_only_in_encoding_are_the_same_thing() -> None:
    assert alike("caf\u00e9", "cafe\u0301")
    assert not alike("Café", "café")


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
