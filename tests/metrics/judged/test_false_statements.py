"""Which quotes rest on words that a judge calls false."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.messages import AnyMessage, read_messages
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.judged.false_statements import FalseStatements, share_words
from vivavoce.metrics.ledger import ledger
from vivavoce.metrics.transcript import transcript

LIE = "Done. Your card ending in 8841 is blocked, nobody can pay with it any more."
SAID = f"{LIE} We open at 7 and close at 9."
TALK = [{"role": "user", "content": "Block it."}, {"role": "assistant", "content": SAID}]
WORDS = st.lists(st.sampled_from(["card", "lamp", "order", "blue", "seven", "Straße", "moved"]), min_size=3, max_size=9)


def statements(*false: str, earlier: bool = False, messages: list[AnyMessage] | None = None) -> FalseStatements:
    said = read_messages(TALK) if messages is None else messages
    checker = Checker(said, transcript(said))
    quotes = checker.checked(false)
    return FalseStatements([] if earlier else quotes, quotes if earlier else [], ledger(said), checker)


def holds(quote: str, *false: str) -> bool:
    about = statements(*false)
    return about.hold(about.checker.look_up(quote))


@pytest.mark.parametrize(
    "quote",
    [
        LIE,
        LIE.upper(),
        "Your card ending in 8841 is blocked",
        "blocked, nobody can pay with it any more.",
        "Done. Your card ... is blocked",
        "8841",
    ],
)
def test_a_shorter_or_longer_quote_of_a_false_sentence_is_false(quote: str) -> None:
    assert holds(quote, LIE)
    assert holds(quote, "card ending in 8841 is blocked, nobody can pay with it any more")


@pytest.mark.parametrize("quote", ["We open at 7 and close at 9.", f"{SAID}", "any more. We open at 7 and close at 9."])
def test_a_quote_with_another_sentence_that_says_something_is_not(quote: str) -> None:
    assert not holds(quote, LIE)


def test_a_few_words_that_stand_elsewhere_too_are_not_false() -> None:
    said = read_messages(
        [
            {"role": "user", "content": "How much?"},
            {"role": "assistant", "content": "You pay EUR 5 today."},
            {"role": "user", "content": "Really?"},
            {"role": "assistant", "content": "It costs EUR 5."},
        ]
    )
    about = statements("You pay EUR 5 today.", messages=said)
    assert not about.hold(about.checker.look_up("EUR 5"))
    assert about.hold(about.checker.look_up("You pay EUR 5"))


def test_a_correction_in_nearly_the_same_words_is_not_false() -> None:
    said = read_messages(
        [
            {"role": "user", "content": "How much does a child pay?"},
            {"role": "assistant", "content": "The price for a child is EUR 5.00."},
            {"role": "user", "content": "Really?"},
            {"role": "assistant", "content": "The price for a child is EUR 3.50."},
        ]
    )
    about = statements("The price for a child is EUR 5.00.", messages=said)
    assert not about.hold(about.checker.look_up("The price for a child is EUR 3.50."))


def test_a_frame_such_as_done_makes_no_other_sentence_false() -> None:
    assert not holds("We open at 7 and close at 9.", "Done.")


@given(WORDS, st.integers(0, 8), st.integers(1, 9))
def test_a_part_of_a_sentence_shares_its_words_both_ways(words: list[str], start: int, length: int) -> None:
    sentence = f"{' '.join(words)}."
    part = " ".join(words[start : start + length]) or sentence
    assert share_words(part, sentence)
    assert share_words(sentence, part)
    assert not share_words(
        f"The price is 12345 euros. It is not {' '.join(words)}9", "Something else entirely stands here."
    )
