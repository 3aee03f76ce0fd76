from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.penelope.tools.sentences import denies, sentences, stem, stems


def test_a_decimal_point_an_abbreviation_and_an_initial_end_no_sentence() -> None:
    text = "It costs 3.5 dollars, e.g. Amazon sells it. Ask Dr. J. Doe! Really?"
    assert list(sentences(text)) == ["It costs 3.5 dollars, e.g. Amazon sells it.", "Ask Dr. J. Doe!", "Really?"]


def test_a_line_ends_a_sentence_and_the_number_of_a_point_does_not() -> None:
    assert list(sentences("1. Open it\n2. Close it. Done")) == ["1. Open it", "2. Close it.", "Done"]
    assert list(sentences("你好。再见！")) == ["你好。", "再见！"]


@given(st.text())
def test_sentences_lose_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "forms",
    [
        ["refund", "refunds", "refunded", "refunding", "refundable"],
        ["policy", "policies"],
        ["delivery", "deliver", "delivered"],
        ["ship", "shipping", "shipped"],
        ["address"],
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_words_that_say_nothing_and_numbers_are_no_keywords() -> None:
    assert stems("Extract the refund timeframe that is mentioned in it, 30") == {
        "refund": "refund",
        "timefram": "timeframe",
    }


def test_a_denial_is_a_word_of_its_own() -> None:
    assert denies("It isn't refundable")
    assert denies("We cannot do that")
    assert not denies("I know the notable knot")
