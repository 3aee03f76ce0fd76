from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.records.score import Evidence
from vivavoce.report.html.evidence import Quote, Register, pieces


def quoted(*texts: str, bad: bool = True) -> tuple[Register, list[Quote]]:
    register = Register()
    found = [Evidence(text=text, turn=0, verified=True) for text in texts]
    return register, register.enter(found, "m0", bad=bad)


def marked(register: Register, text: str) -> list[str]:
    return [text[mark.start : mark.end] for mark in register.marks(text, 0, by_assistant=True)]


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("no refund", "I give No\n  refund at all", ["No\n  refund"]),
        ("“it’s done”", "He said 'it's done' twice", ["it's done"]),
        ("a – b", "a — b", ["a — b"]),
        ("first ... last", "the first, then much, the last one", ["first", "last"]),
        ("(a+b)*", "what (a+b)* is", ["(a+b)*"]),
        ("never said", "something else", []),
        ("last ... first", "the first, the last", []),
        ("...", "anything", []),
    ],
)
def test_a_quote_is_found_as_faithfully_as_it_was_checked(quote: str, text: str, found: list[str]) -> None:
    register, _ = quoted(quote)
    assert marked(register, text) == found


def test_letters_follow_the_text_and_not_the_marks() -> None:
    register, (late, early) = quoted("late", "early")
    register.marks("early and late", 0, by_assistant=True)
    assert (early.letter, late.letter) == ("a", "b")


def test_what_overlaps_is_marked_once() -> None:
    register, (whole, part) = quoted("one two three", "two")
    assert marked(register, "one two three") == ["one two three"]
    assert (whole.letter, part.letter) == ("a", "")


def test_words_of_others_are_a_source_and_never_a_fault() -> None:
    register, (quote,) = quoted("paid")
    register.marks("paid", 0, by_assistant=False)
    assert quote.ink == "src"


def test_each_note_keeps_its_own_colour_for_the_same_words() -> None:
    register, (met,) = quoted("paid", bad=False)
    (fault,) = register.enter([Evidence(text="paid", turn=0, verified=True)], "m1", bad=True)
    register.marks("paid", 0, by_assistant=True)
    assert (met.letter, met.ink, fault.letter, fault.ink) == ("a", "met", "a", "bad")
    assert (met.place.cite.ink, met.place.cite.note) == (
        "bad",
        "m1",
    )  # the words are red, and lead to the note that faults them


def test_what_is_found_good_is_neither_a_fault_nor_a_source() -> None:
    register, (quote,) = quoted("paid", bad=False)
    register.marks("paid", 0, by_assistant=False)
    assert quote.ink == "met"


def test_the_28th_letter_has_two() -> None:
    words = [f"word{i:02}" for i in range(28)]
    register, quotes = quoted(*words)
    register.marks(" ".join(words), 0, by_assistant=True)
    assert [quotes[i].letter for i in (0, 25, 26, 27)] == ["a", "z", "aa", "ab"]


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_whatever_is_quoted_the_text_stays_whole(text: str, quotes: list[str]) -> None:
    register, _ = quoted(*quotes)
    assert "".join(piece.text for piece in pieces(text, register.marks(text, 0, by_assistant=True))) == text
