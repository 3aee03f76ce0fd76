"""Numbers that are spelled out: which words are read as digits, and which are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.spelled_digits import digits_from_words, with_numerals
from vivavoce.comparing.text import fold

ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
GERMAN = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
DIGITS = st.lists(st.integers(0, 9), min_size=2, max_size=12)


@given(DIGITS, st.sampled_from([ENGLISH, GERMAN]), st.sampled_from([" ", ", ", "-", " - ", ". ", "…"]))
def test_a_number_read_digit_by_digit_is_that_number(digits: list[int], words: tuple[str, ...], gap: str) -> None:
    spelled = gap.join(words[digit] for digit in digits)
    number = "".join(map(str, digits))
    text = digits_from_words(f"It is order {spelled}!")
    assert text == f"it is order {number}!"
    assert digits_from_words(spelled.upper()) == number


@given(st.lists(st.integers(0, 9), min_size=2, max_size=8))
def test_german_digits_may_be_written_as_one_word(digits: list[int]) -> None:
    assert digits_from_words("".join(GERMAN[digit] for digit in digits)) == "".join(map(str, digits))


@given(st.text("abcK 0123456789,.-…"))
def test_a_text_without_words_for_numbers_is_only_folded(text: str) -> None:
    assert digits_from_words(text) == fold(text)


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("fifty-five thirty", "5530"),
        ("fifty five thirty", "5530"),
        ("double five three zero", "5530"),
        ("triple nine", "999"),
        ("five five 3 zero", "5530"),
        ("55 three oh", "5530"),
        ("fünf fünf drei null", "5530"),
        ("fuenf, fuenf, drei, null", "5530"),
        ("fünfundfünfzig dreißig", "5530"),
        ("zwo zwo null vier", "2204"),
        ("fünffünfdreinull", "5530"),
        ("I am thirty-one", "i am 31"),
        ("L two two zero four", "l 2204"),
        ("twenty, five", "205"),
        ("twelve", "12"),
    ],
)
def test_codes_as_people_read_them(text: str, digits: str) -> None:
    assert digits_from_words(text) == digits


@pytest.mark.parametrize(
    "text",
    [
        "no one knows",
        "one of them",
        "gib acht",
        "oh 5530",
        "oh, 5 of 7",
        "double 55",
        "attention",
        "a second one; two weeks",
        "5530 and 7",
        "eine von zweien",
        "five thousand",
        "",
    ],
)
def test_words_that_spell_out_no_number_stay(text: str) -> None:
    assert digits_from_words(text) == fold(text)


@pytest.mark.parametrize(
    ("text", "numerals"),
    [
        ("12 (twelve)", "12 (12)"),
        ("12, five later", "12, 5 later"),
        ("Twenty-one USD", "21 USD"),
        ("fünfundzwanzig Euro", "25 Euro"),
        ("two five", "2 5"),
        ("this one, oh", "this one, oh"),
        ("five hundred", "5 hundred"),
    ],
)
def test_each_word_for_a_number_is_a_number_of_its_own(text: str, numerals: str) -> None:
    assert with_numerals(text) == numerals
