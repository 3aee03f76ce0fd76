from __future__ import annotations

import pytest

from vivavoce.grading.texts import Take, lacks_number, misses

LAST = "Done. EUR 25.00 for order 1042."


@pytest.mark.parametrize(
    ("text", "take", "reason"),
    [
        ("nothing", "last", "contains no number"),
        ("on 2024-05-01 at 10:24", "last", "contains no number"),
        ("EUR 20.00 back", "last", "the number is 20.00, expected 24.9 ± 0.01"),
        (
            LAST,
            "last",
            "the last number is 1042 (in 'EUR 25.00 for order 1042.'), expected 24.9 ± 0.01; "
            "use `take: first` or `contains: 24.9` for another number",
        ),
        (
            LAST,
            "first",
            "the first number is 25.00 (in 'Done. EUR 25.00 for order 1042.'), expected 24.9 ± 0.01; "
            "use `take: last` or `contains: 24.9` for another number",
        ),
        ("1,234", "last", "the number is 1,234 (read as 1234; `locale` may say otherwise), expected 24.9 ± 0.01"),
        ("10k", "last", "the number is 10k (read as 10000; `locale` may say otherwise), expected 24.9 ± 0.01"),
        ("٤٢", "last", "the number is ٤٢ (read as 42), expected 24.9 ± 0.01"),
    ],
)
def test_the_reason_names_the_number_that_counts_and_where_it_is(text: str, take: Take, reason: str) -> None:
    assert misses(text, 24.9, 0.01, 0, take) == reason


def test_the_reason_names_the_numbers_of_a_text_that_lacks_one() -> None:
    assert lacks_number("EUR 24,000 for 2", 24) == "does not contain 24; its numbers are 24,000, 2"
    assert lacks_number("none", 24.9) == "does not contain 24.9; it contains no number"
    assert lacks_number("1 2 3 4 5 6", 9) == "does not contain 9; its numbers are 1, 2, 3, 4, 5, …"
    assert lacks_number("EUR 24", 24) == ""
