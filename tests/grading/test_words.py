from __future__ import annotations

import pytest

from vivavoce.comparing.text import FoldedText
from vivavoce.grading.texts import Answer, says


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        (24.9, "That is 24.90.", True),
        (24.9, "24.95", False),
        (24.9, "124.9", False),
        (5, "15", False),
        (5, "5.50", False),
        (5, "Take 5.", True),
        (10, "100", False),
        (9, "24.9", False),
        (1042, "order #1042.", True),
        (1042, "order #A1042.", False),
        (1e3, "1000", True),
        (1e21, "1e+21", True),
        (-3, "-3 degrees", True),
        ("5", "15", True),
        ("I'm sorry", "I\u2019m SORRY.", True),
        ("credit card", "credit\n card", True),
        ("credit card", "credit\u00a0card", True),
        ("voucher", "vou\u200bcher", True),
        ("\u2019", "'", False),
        ("don\u2019t", "don't", True),
        ("\n", "one line, two words", False),
        ("\n", "two\nlines", True),
        ("a  b", "a b", True),
        ("voucher", "couch", False),
    ],
)
def test_words_and_numbers_are_found_however_they_are_set(wanted: str | float, text: str, found: bool) -> None:
    assert says(FoldedText(text), wanted) is found


@pytest.mark.parametrize(
    ("wanted", "text", "same"),
    [(24.9, " 24.90 ", True), (42, "42", True), (42, "42 or 43", False), ("yes", " yes", True), ("yes", "Yes", False)],
)
def test_an_answer_is_a_text_or_a_number(wanted: str | float, text: str, same: bool) -> None:
    assert Answer(text).is_value(wanted) is same
