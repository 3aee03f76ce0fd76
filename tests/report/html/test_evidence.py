from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.records.score import Evidence
from vivavoce.report.html.evidence import Quote, Register, legible, pieces, turning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;34msrc\x1b[0m", "src"),
        ("\x1b]8;;http://evil.example\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1bPq#0;2\x1b\\x", "x"),
        ("a\r\nb\x00c\x9b", "a\nbc"),
        ("a\tb", "a\tb"),
        ("x\u202ey", "x\u202ey"),
        ("half \ud83d", "half ?"),
    ],
)
def test_what_controls_a_terminal_is_left_out(text: str, expected: str) -> None:
    assert legible(text) == expected


def test_an_open_control_string_takes_nothing_with_it() -> None:
    assert legible("\x1b]8;;never closed, and then words") == "8;;never closed, and then words"


@pytest.mark.parametrize("text", ["\x1b]" * 200_000, "\x1b[" + "1;" * 200_000, "\x1b]" + "x" * 400_000])
def test_control_strings_take_linear_time(text: str) -> None:
    start_time = time.process_time()
    legible(text)
    assert time.process_time() - start_time < 1


def test_characters_that_turn_the_direction_are_named() -> None:
    assert list(turning("a\u202eb\u2066")) == [("a", False), ("U+202E", True), ("b", False), ("U+2066", True)]
    assert list(turning("")) == [("", False)]


def register_quotes(*texts: str, bad: bool = True) -> tuple[Register, list[Quote]]:
    register = Register()
    evidence = [Evidence(text=text, turn=0, verified=True) for text in texts]
    return register, register.enter(evidence, "m0", bad=bad)


def mark_texts(register: Register, text: str) -> list[str]:
    return [text[mark.start : mark.end] for mark in register.marks(text, 0, by_assistant=True)]


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
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
def test_a_quote_is_found_as_faithfully_as_it_was_checked(quote: str, text: str, expected: list[str]) -> None:
    register, _ = register_quotes(quote)
    assert mark_texts(register, text) == expected


def test_letters_follow_the_text_and_not_the_marks() -> None:
    register, (late, early) = register_quotes("late", "early")
    register.marks("early and late", 0, by_assistant=True)
    assert (early.letter, late.letter) == ("a", "b")


def test_what_overlaps_is_marked_once() -> None:
    register, (whole, part) = register_quotes("one two three", "two")
    assert mark_texts(register, "one two three") == ["one two three"]
    assert (whole.letter, part.letter) == ("a", "")


def test_words_of_others_are_a_source_and_never_a_fault() -> None:
    register, (quote,) = register_quotes("paid")
    register.marks("paid", 0, by_assistant=False)
    assert quote.ink == "src"


def test_each_note_keeps_its_own_colour_for_the_same_words() -> None:
    register, (met,) = register_quotes("paid", bad=False)
    (fault,) = register.enter([Evidence(text="paid", turn=0, verified=True)], "m1", bad=True)
    register.marks("paid", 0, by_assistant=True)
    assert (met.letter, met.ink, fault.letter, fault.ink) == ("a", "met", "a", "bad")
    assert (met.place.cite.ink, met.place.cite.note) == (
        "bad",
        "m1",
    )  # the words are red, and lead to the note that faults them


def test_what_is_found_good_is_neither_a_fault_nor_a_source() -> None:
    register, (quote,) = register_quotes("paid", bad=False)
    register.marks("paid", 0, by_assistant=False)
    assert quote.ink == "met"


def test_the_28th_letter_has_two() -> None:
    words = [f"word{i:02}" for i in range(28)]
    register, quotes = register_quotes(*words)
    register.marks(" ".join(words), 0, by_assistant=True)
    assert [quotes[i].letter for i in (0, 25, 26, 27)] == ["a", "z", "aa", "ab"]


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_whatever_is_quoted_the_text_stays_whole(text: str, quotes: list[str]) -> None:
    register, _ = register_quotes(*quotes)
    assert "".join(piece.text for piece in pieces(text, register.marks(text, 0, by_assistant=True))) == text
