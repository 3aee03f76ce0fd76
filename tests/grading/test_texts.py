from __future__ import annotations

import pytest

from vivavoce.grading.texts import numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Total: $1,234.50 (incl. 19% tax)", [1234.5, 19.0]),
        ("5, then -6.", [5.0, -6.0]),
        ("4/5", [4.0, 5.0]),
        ("It leaves at 13:00", []),
        ("2024-05-15", []),
        ("3-5 days, 3–5 days", []),
        ("24,90 EUR", []),
        ("1.024,90", []),
        ("1\u202f000", []),
        ("1.2.3", []),
    ],
)
def test_a_part_of_a_time_or_of_a_foreign_number_is_no_number(text: str, found: list[float]) -> None:
    assert numbers(text) == found
