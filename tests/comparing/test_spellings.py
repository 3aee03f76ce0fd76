"""Codes and days are found in every spelling, and other codes and days are not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.spellings import code_of, codes_in, days_in, days_of, digits_from_words, with_numerals
from vivavoce.comparing.text import fold


@pytest.mark.parametrize(
    "spelling", ["TK8812", "tk 8812", "TK_8812", "#TK-8812", "(tk.8812)", "ＴＫ–８８１２", "T K 88 12"]
)
def test_the_spellings_of_a_code_share_what_identifies_it(spelling: str) -> None:
    assert code_of(spelling) == code_of("TK-8812") == "tk8812"


@pytest.mark.parametrize("other", ["TK-8813", "TK-88121", "XTK-8812", "TK-8812-B", "8812", "TK", "", "TK-88:12"])
def test_another_code_is_not_the_same(other: str) -> None:
    assert code_of(other) != code_of("TK-8812")


@pytest.mark.parametrize(("text", "other"), [("24.90", "2490"), ("10:30", "1030"), ("-5000", "5000")])
def test_a_mark_between_digits_that_means_something_stays(text: str, other: str) -> None:
    assert code_of(text) != code_of(other)


@given(st.from_regex(r"[A-Z]{1,4}[0-9]{2,8}", fullmatch=True), st.lists(st.sampled_from(["", "-", " ", "_", "–"])))
def test_marks_and_case_do_not_change_a_code(code: str, marks: list[str]) -> None:
    spelling = "".join(letter + (marks[place] if place < len(marks) else "") for place, letter in enumerate(code))
    assert code_of(spelling.strip("-_ –").lower()) == code_of(code) == code.lower()
    if len(code) >= 4:
        assert code.lower() in set(codes_in(f"pay the order with {code}, please"))


def test_a_short_code_is_not_looked_for_in_longer_texts() -> None:
    assert code_of("A-9") == code_of("a9") == "a9"
    assert "a9" not in set(codes_in("see A-9 in the list"))


SPELLINGS = """
2024-05-01
2024/05/01
2024.5.1
01.05.2024
05/01/2024
1/5/24
20240501
2024-05-01T00:00:00Z
2024-05-01 00:00
May 1, 2024
May 1st 2024
1 May 2024
1st of May, 2024
01-May-2024
2024-May-01
Wednesday, 1 May 2024
May 1
1. Mai 2024
1er mai 2024
1 de mayo de 2024
2024年5月1日
"""


@pytest.mark.parametrize("spelling", SPELLINGS.strip().splitlines())
def test_a_day_is_read_in_each_spelling(spelling: str) -> None:
    assert "2024-05-01" in days_of(spelling)
    assert "2024-05-01" in days_in(f"from {spelling} on")


@pytest.mark.parametrize("text", ["2024-05-02", "2023-05-01", "May 2024", "05/01", "2024-13-41", "v2024", "", "soon"])
def test_another_day_or_none_is_not_that_day(text: str) -> None:
    assert "2024-05-01" not in days_in(text)


def test_a_time_makes_a_moment_that_a_text_states_with_its_day() -> None:
    assert days_of("2024-05-01T14:30:00+02:00") == days_of("2024/05/01 2:30 pm") == {"2024-05-01 14:30"}
    assert days_in("at 2024-05-01 14:30, or later") == {"2024-05-01", "2024-05-01 14:30"}


@given(st.dates(date(1950, 1, 1), date(2060, 1, 1)))
def test_each_day_is_read_as_programs_write_it(day: date) -> None:
    for pattern in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%B %d, %Y", "%d %b %Y", "%Y%m%d", "%a, %d %b %y"):
        assert day.isoformat() in days_of(day.strftime(pattern))


ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
GERMAN = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
DIGITS = st.lists(st.integers(0, 9), min_size=2, max_size=12)


@given(DIGITS, st.sampled_from([ENGLISH, GERMAN]), st.sampled_from([" ", ", ", "-", " - ", ". ", "…"]))
def test_a_number_read_digit_by_digit_is_that_number(digits: list[int], words: tuple[str, ...], gap: str) -> None:
    words_of_number = gap.join(words[digit] for digit in digits)
    number = "".join(map(str, digits))
    text = digits_from_words(f"It is order {words_of_number}!")
    assert text == f"it is order {number}!"
    assert digits_from_words(words_of_number.upper()) == number


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
