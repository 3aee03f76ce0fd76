from __future__ import annotations

import pytest

from vivavoce.features.realism.acts import asks, does


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("greets", "Hi there, my lamp is late"),
        ("thanks", "ok thx"),
        ("thanks", "Thank you so much!"),
        ("polite", "Could you check it?"),
        ("polite", "check it pls"),
        ("confirms", "Yes, that’s right"),
        ("refuses", "No thanks"),
        ("corrects", "Sorry, I meant the 14th"),
        ("corrects", "No wait, make it two"),
        ("complains", "This is ridiculous"),
        ("complains", "I already told you that"),
        ("informal", "i dont know"),
        ("says goodbye", "That's all, have a nice day"),
    ],
)
def test_an_act_is_seen_by_its_words(act: str, message: str) -> None:
    assert does(act, message)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("greets", "My new lamp has a cat on it that says hello"),
        ("thanks", "A thankless task"),
        ("confirms", "I ordered it last week and it is not the right one, yes"),
        ("refuses", "I ordered a lamp and there was no lamp in the box"),
        ("corrects", "I want to change the date of my booking"),
        ("complains", "My lamp is broken"),
        ("informal", "I don't know"),
        ("says goodbye", "My dog died"),
    ],
)
def test_words_that_only_look_alike_are_no_act(act: str, message: str) -> None:
    assert not does(act, message)


def test_a_question_is_seen_in_any_script() -> None:
    assert asks("いつ届きますか？")
    assert asks("متى يصل؟")
    assert not asks("It is late.")
