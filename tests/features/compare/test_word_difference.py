from __future__ import annotations

import random

import pytest

from vivavoce.features.compare.text_difference import MAX_WORDS, same_share, word_difference


def as_marks(before: str, after: str) -> str:
    marks = {"same": "{}", "gone": "[-{}-]", "new": "{{+{}+}}"}
    return "".join(marks[each.kind].format(each.text) for each in word_difference(before, after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", ""),
        ("the same", "the same", "the same"),
        ("", "new", "{+new+}"),
        ("old", "", "[-old-]"),
        ("You get 10 euros back.", "You get 20 euros back.", "You get [-10-]{+20+} euros back."),
        ("I can refund it, yes.", "I cannot refund it.", "I [-can-]{+cannot+} refund it[-, yes-]."),
        ("one two three four", "one 2 3 four", "one [-two three-]{+2 3+} four"),
        ("返品は三十日以内です", "返品は十四日以内です", "返品は[-三-]十{+四+}日以内です"),
        ("don’t", "do", "[-don’t-]{+do+}"),
    ],
)
def test_the_words_that_differ_are_marked(before: str, after: str, expected: str) -> None:
    assert as_marks(before, after) == expected


def test_both_texts_can_be_read_from_it() -> None:
    draw = random.Random(7)
    for _ in range(200):
        before, after = ("".join(draw.choices("ab ,.\n", k=draw.randrange(40))) for _ in range(2))
        difference = word_difference(before, after)
        assert "".join(item.text for item in difference if item.kind != "new") == before
        assert "".join(item.text for item in difference if item.kind != "gone") == after


def test_long_texts_differ_as_a_whole_between_what_their_ends_share() -> None:
    before = "start " + " ".join(f"a{i}" for i in range(MAX_WORDS)) + " end"
    after = "start " + " ".join(f"b{i}" for i in range(MAX_WORDS)) + " end"
    assert [each.kind for each in word_difference(before, after)] == ["same", "gone", "new", "same"]


def test_how_much_is_the_same() -> None:
    assert same_share(word_difference("abcd", "abcd")) == 1
    assert same_share(word_difference("abcd", "efgh")) == 0
    assert same_share(word_difference("", "")) == 1
