"""Codes and days are found in every spelling, and other codes and days are not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.comparing.codes import code_of, codes_in
from vivavoce.comparing.dates import days_in, days_of


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
