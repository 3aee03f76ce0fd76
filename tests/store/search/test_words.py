from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.store.search.words import LONGEST, folded, snippet, stretches


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A refund, please! (order #4711)", "a refund please order 4711"),
        ("https://example.com/a_b?c=1", "https example com a b c 1"),
        ("Grüße aus Łódź", "grusse aus łodz"),
        ("cafe\u0301 CAFÉ", "cafe cafe"),
        ("返金してください", "返 金 し て く た さ い"),
        ("🎓 \x00 — …", ""),
    ],
)
def test_words_are_compared_without_case_accents_and_signs(text: str, words: str) -> None:
    assert " ".join(folded(text).split()) == words


@given(st.text(max_size=60))
def test_every_word_of_a_text_is_found_where_it_stands(text: str) -> None:
    for phrase in filter(None, (" ".join(folded(word).split()) for word in text.split())):
        shown = snippet(text, [phrase])
        assert shown is not None
        assert shown.text in text
        assert folded(shown.text[shown.start : shown.end]).split()[0] == phrase.partition(" ")[0]


def test_a_snippet_shows_what_is_around_the_first_of_the_words() -> None:
    found = snippet("x " * 500 + "the GRÜSSE came " + "y " * 500, ["came", "grusse"])
    assert found is not None
    assert found.text[found.start : found.end] == "GRÜSSE"
    assert len(found.text) < 200
    assert snippet("nothing", ["some"]) is None


@given(st.lists(st.text(max_size=50)))
def test_stretches_hold_every_word_once(texts: list[str]) -> None:
    assert " ".join(stretches(texts)).split() == " ".join(map(folded, texts)).split()


def test_a_long_text_is_several_stretches() -> None:
    assert [len(one) for one in stretches(["ab " * LONGEST, "c"])] == [LONGEST, LONGEST, LONGEST, 1]
