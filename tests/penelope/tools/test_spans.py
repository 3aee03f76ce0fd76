from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.tools.spans import Span, find_spans


def list_spans(text: str) -> list[tuple[str, str, str]]:
    return [(span.kind, span.text, span.value) for span in find_spans(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-03-01", "2024-03-01"),
        ("2024-03-01T10:00:00Z", "2024-03-01"),
        ("1/2/2024", "2024-01-02 or 2024-02-01"),
        ("25/12/24", "2024-12-25"),
        ("31.12.2024", "2024-12-31"),
        ("3 March 2024", "2024-03-03"),
        ("the 3rd of March", "--03-03"),
        ("March 3rd", "--03-03"),
        ("Sunday, Sept. 3, 2024", "2024-09-03"),
        ("May 5", "--05-05"),
        ("March 2024", "2024-03"),
        ("Monday", "monday"),
        ("29 February", "--02-29"),
    ],
)
def test_a_date_is_one_in_any_spelling(text: str, value: str) -> None:
    assert [(kind, known) for kind, _, known in list_spans(f"It is {text}.")] == [("date", value)]


@pytest.mark.parametrize("text", ["you may 3", "2024-13-45", "version 1.2.3", "30.2.2024", "24/7"])
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert "date" not in [kind for kind, _, _ in list_spans(text)]


@pytest.mark.parametrize(("text", "value"), [("14:30", "14:30"), ("2:05 p.m.", "14:05"), ("12 am", "00:00")])
def test_a_time_is_told_in_24_hours(text: str, value: str) -> None:
    assert list_spans(f"Come at {text}") == [("time", text, value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$1,299.50", "1299.5 $"),
        ("5 dollars", "5 $"),
        ("1.234,56 €", "1234.56 €"),
        ("EUR 7", "7 €"),
    ],
)
def test_money_is_an_amount_and_its_currency(text: str, value: str) -> None:
    assert list_spans(f"It costs {text}") == [("money", text, value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30-day", "30 day"),
        ("30 days", "30 day"),
        ("5 %", "5 %"),
        ("5 percent", "5 %"),
        ("3 items", "3 item"),
        ("3 lamps", "3 lamp"),
        ("3-5 business days", "3-5 business day"),
        ("2.50 kg", "2.5 kg"),
    ],
)
def test_a_quantity_has_one_unit(text: str, value: str) -> None:
    assert list_spans(f"about {text}") == [("quantity", text, value)]


def test_digits_of_phones_dates_addresses_and_points_are_no_numbers() -> None:
    text = (
        "1. Call 555-123-4567, +49 30 901820 or (212) 555-0188 by 2024-03-01 at 14:30\n2) http://a.org/7?b=8, a1@b2.org"
    )
    assert [kind for kind, _, _ in list_spans(text)] == ["phone", "phone", "phone", "date", "time", "url", "email"]


def test_plain_numbers_and_codes_are_left() -> None:
    assert list_spans("order AB-1234, #778812 and -5, B2B") == [
        ("code", "AB-1234", "AB-1234"),
        ("number", "778812", "778812"),
        ("number", "-5", "-5"),
    ]


PIECES = "1|2024|-03|/4|:30| |.|,|March |May |3rd|$|€|%|days|kg|+49 |(212)| 555|@|a.b|https://|\n|#|-|日|\0"
MIXED = st.lists(st.sampled_from(PIECES.split("|"))).map("".join)


@given(st.text() | MIXED)
def test_spans_stand_in_the_text_and_never_overlap(text: str) -> None:
    spans = find_spans(text)
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert all(first.end <= other.start for first, other in pairwise(spans))
    assert all(isinstance(span, Span) and span.value for span in spans)
