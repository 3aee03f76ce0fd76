from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.rules.sameness import (
    alike,
    identity,
    lies_above,
    lies_below,
    may_be_alike,
    may_lie_above,
    may_lie_below,
    may_mention,
    mentions,
)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("A-17", " A-17"),
        ("A-17", "a-17"),
        ("New York", "new  york"),
        (["Café"], ["CAFE\u0301"]),
        (1042, "1042"),
        (7, 7.0),
        ("7", 7.0),
        (1e-05, "0.00001"),
        (24.9, "24.90"),
        (1250, "1’250"),
        (0, "-0"),
        ([1, 2], [1, 2]),
        ([1], ["1"]),
        ([1], [1.0]),
        ({"a": [1, "x"], "b": 2}, {"b": "2.0", "a": ["1", " x"]}),
        (float("nan"), float("nan")),
    ],
)
def test_the_same_thing_may_be_written_as_number_or_as_text(a: Any, b: Any) -> None:
    assert alike(a, b)
    assert alike(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("A-17", "A-1"),
        (1, True),
        ("true", True),
        (None, "null"),
        ([1], "[1]"),
        ([1], 1),
        ([1, 2], [12]),
        ([[1], 2], [[1, 2]]),
        ({"a": 1}, {"a": 2}),
        ("007", 7),
        (9007199254740993, 9007199254740992),
        ("5%", 5),
        ("=1,", 1),
    ],
)
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
    assert not mentions("order A-17-B", "A-17")
    assert mentions("order A-17: it", "A-17")
    assert mentions("my voucher, please", "voucher")


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


@pytest.mark.parametrize(
    ("value", "text"), [("Ana", "I am Ana¹."), ("A-17", "№A-17"), ("A-17", "A-17² is it"), ("m²", "2 m²")]
)
def test_a_sign_is_no_part_of_a_mentioned_value(value: str, text: str) -> None:
    assert mentions(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sent to ana@x.org.uk", "ana@x.org"),
        ("sent to my.ana@x.org", "ana@x.org"),
        ("sent to info@a.dev", "info@a.de"),
        ("see x.org/payback", "x.org/pay"),
        ("see https://x.org/a/b", "https://x.org/a"),
        ("it is in /home/ana/x", "/home/ana"),
        ("written in C++", "C"),
        ("it is un**paid**", "paid"),
        ("it is ~~A-17~~ A-18", "A-17"),
        ("it is **24**.90", 24),
        ("it is 5&nbsp;000 €", 5),
    ],
)
def test_a_part_of_what_a_reader_sees_is_not_mentioned(text: str, value: str | int) -> None:
    assert not mentions(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sent to ana@x.org.", "ana@x.org"),
        ("(see https://x.org/a)", "https://x.org/a"),
        ("see <https://x.org/a>.", "https://x.org/a"),
        ("see [it](https://x.org/a)", "it"),
        ("it is A-**17**", "A-17"),
        ("it is ~~A-17~~ A-18", "A-18"),
        ("- order `1042`: paid", 1042),
        ("it is -40", -40),
    ],
)
def test_what_ends_at_a_boundary_is_mentioned(text: str, value: str | int) -> None:
    assert mentions(text, value)


def test_arguments_that_differ_only_in_encoding_are_the_same_thing() -> None:
    assert alike("caf\u00e9", "cafe\u0301")


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
        (5, "It is -5 degrees.", False),
        (17, "order A-17", False),
        ("1042", "订单1042已退款。", True),
        (1042, "订单1042已退款。", True),
        (1, "1e3", False),
        ("-5", "−5 °C", True),
    ],
)
def test_a_number_that_is_mentioned_is_no_part_of_another(value: Any, text: str, found: bool) -> None:
    assert mentions(text, value) is found


def test_a_value_may_be_nested_deeper_than_python_can_call() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert identity(deep).count("[") == 100_000


@pytest.mark.parametrize(
    ("value", "surely", "possibly"),
    [
        (150, True, True),
        ("150", True, True),
        ("1,500", False, True),
        ("1'500", True, True),
        ("EUR 150.00", True, True),
        ("100 of 150", False, True),
        (100, False, False),
        ("99.99", False, False),
        (100.01, True, True),
        (float("inf"), True, True),
        (float("nan"), False, True),
        ("NaN", False, True),
        ("all of it", False, True),
        ("", False, True),
        (None, False, True),
        (True, False, True),
        ([150], False, True),
        ({"value": 1}, False, True),
    ],
)
def test_what_is_above_a_limit_surely_and_possibly(value: Any, surely: bool, possibly: bool) -> None:
    assert lies_above(value, 100) is surely
    assert may_lie_above(value, 100) is possibly


@pytest.mark.parametrize(
    "text",
    [
        *(
            "5 million",
            "5 thousand",
            "50 lakh",
            "5 crore",
            "5 Mio",
            "5 Mio. €",
            "5 Mrd",
            "5 Tsd",
            "5 mille",
            "5 k",
            "$5m",
        ),
        *(
            "5 hundred",
            "5 billion",
            "5million",
            "5-million",
            "**5** Million",
            "5 (thousand)",
            "5 M€",
            "EUR 5 m",
            "5 mil",
        ),
        *("5 millones", "5 millions", "5 Milliarden", "5 тыс.", "5 млн", "5 万", "5 억", "5 लाख", "5 ล้าน", "5 tusen"),
        *(
            "5 ｍｉｌｌｉｏｎ",
            "5 mil\u00adlion",
            "5\u00a0Mio.",
            "in thousands: 5",
            "5 trillion",
            "5 grand",
            "5 cr",
            "-5 or 5 million",
        ),
    ],
)
def test_a_scale_word_may_put_a_number_above_a_limit(text: str) -> None:
    assert may_lie_above(text, 100)
    assert not lies_below(text, 100)


@pytest.mark.parametrize(
    "text",
    [
        "5 miles",
        "5 kg",
        "5 m",
        "5 min",
        "5 items",
        "5 Millicent Road",
        "5 Miller Street",
        "EUR 5",
        "5 Mr",
        "5 mg",
        "5 months",
        "5 mm",
        "5 L",
        "bin 5",
    ],
)
def test_other_words_leave_a_number_as_it_is(text: str) -> None:
    assert lies_below(text, 100)
    assert not may_lie_above(text, 100)


def test_a_scale_word_makes_a_number_only_larger() -> None:
    assert lies_above("5 million", 1)
    assert not may_lie_above("0 million", 1)
    assert lies_below("$5k", 10_000)
    assert lies_below("5百万", 10**7)
    assert lies_below("3万円", 10**5)
    assert not may_lie_below("5 million", 1)
    assert may_lie_below("-5 million", -100)


def test_what_is_below_a_limit_surely_and_possibly() -> None:
    assert [lies_below(value, 2) for value in (1, "1", "1.500", "unknown")] == [True, True, False, False]
    assert [may_lie_below(value, 2) for value in (1, "1", "1.500", "unknown", 2, "5")] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    "value", ["50 or 1,234,5", "5 or 500,000,00", "50 or 2^10", "5 or DM500", "50 or 555-123-4567"]
)
def test_digits_that_are_not_read_may_be_above_any_limit(value: str) -> None:
    assert may_lie_above(value, 100)
    assert not lies_below(value, 100)


@pytest.mark.parametrize(
    ("a", "b", "may"), [("1.234", 1234, True), ("1.234", "1.234", True), ("1.234", 12, False), (1, True, True)]
)
def test_ambiguous_numbers_may_be_the_same(a: Any, b: Any, may: bool) -> None:
    assert may_be_alike(a, b) is may


@pytest.mark.parametrize(
    ("value", "may_be"),
    [
        *((value, False) for value in ("twenty dollars", "12 (twelve)", "12-15", "12 - 15 EUR", "fifty")),
        *((value, True) for value in ("five dollars", "12 (five)", "twelve or nine", "15-12", "minus 20", "- 20")),
        *((value, True) for value in ("20 or five hundred", "20 (cinquante)", "1**50**")),
    ],
)
def test_what_may_be_below_a_limit_in_words_and_ranges(value: str, may_be: bool) -> None:
    assert may_lie_below(value, 10) is may_be


@pytest.mark.parametrize("value", ["minus 500", "零下500", "− 500", "- 500", "2 thousand 500", "1**50**", "500 (five)"])
def test_a_number_with_a_doubt_is_not_surely_above_a_limit(value: str) -> None:
    assert not lies_above(value, 100)


@pytest.mark.parametrize("phrase", ["20%", "24.90 €", "1.5"])
@pytest.mark.parametrize("form", ["{0} {1}", "{0}&nbsp;{1}", "**{0}**{1}"])
def test_a_message_may_mention_an_amount_in_another_form(phrase: str, form: str) -> None:
    number, unit = (phrase.rstrip(" €%"), phrase.lstrip("0123456789. "))
    assert may_mention(f"It is {form.format(number.replace('.', ','), unit)}.", phrase)
