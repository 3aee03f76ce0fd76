from __future__ import annotations

import pytest

from vivavoce.comparing.text import contains_words, fold
from vivavoce.metrics.exact.speakers import compile_phrases, escape_phrases, read_phrases


def matches(phrase: str, text: str) -> bool:
    pattern = compile_phrases(escape_phrases([phrase]))
    return pattern is not None and pattern.search(fold(text)) is not None


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
        ("u\u0308ber", "Ü\u200bBER alles", True),
        ("傻瓜", "你真是个傻瓜啊。", True),
    ],
)
def test_a_phrase_is_found_as_whole_words_in_any_spelling(phrase: str, text: str, there: bool) -> None:
    assert matches(phrase, text) is there
    assert contains_words(text, phrase) is there


def test_nothing_to_look_for_is_no_pattern() -> None:
    assert compile_phrases(escape_phrases([" ", ""])) is None


@pytest.mark.parametrize("file", ["refusal_phrases.txt", "profanity_terms.txt"])
def test_the_lists_hold_each_line_once(file: str) -> None:
    lines = read_phrases(file)
    assert len(lines) == len(set(lines)) > 5
    assert not any(line.startswith("#") for line in lines)
