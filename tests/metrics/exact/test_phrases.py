from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.exact.phrases import compiled, listed, literal, straight


def found(phrase: str, text: str) -> bool:
    pattern = compiled(literal([phrase]))
    return pattern is not None and pattern.search(straight(text)) is not None


@pytest.mark.parametrize(
    ("phrase", "text", "there"),
    [
        ("no", "I know that", False),
        ("no", "no!", True),
        ("I can't", "but I can’t.", True),
        ("piss off", "Piss \n OFF", True),
        ("a.b", "aXb", False),
        ("c++", "c++ is it", True),
        ("(x", "see (x)", True),
        ("über", "darüber", False),
    ],
)
def test_a_phrase_is_found_as_whole_words_in_any_spelling(phrase: str, text: str, there: bool) -> None:
    assert found(phrase, text) is there


@given(st.text())
def test_straightening_keeps_every_place(text: str) -> None:
    assert len(straight(text)) == len(text)


def test_nothing_to_look_for_is_no_pattern() -> None:
    assert compiled(literal([" ", ""])) is None


@pytest.mark.parametrize("file", ["refusal_phrases.txt", "profanity_terms.txt"])
def test_the_lists_hold_each_line_once(file: str) -> None:
    lines = listed(file)
    assert len(lines) == len(set(lines)) > 5
    assert not any(line.startswith("#") for line in lines)
