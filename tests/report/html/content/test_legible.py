from __future__ import annotations

import time

import pytest

from vivavoce.report.html.content.legible import legible, turning


@pytest.mark.parametrize(
    ("text", "found"),
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
def test_what_controls_a_terminal_is_left_out(text: str, found: str) -> None:
    assert legible(text) == found


def test_an_open_control_string_takes_nothing_with_it() -> None:
    assert legible("\x1b]8;;never closed, and then words") == "8;;never closed, and then words"


@pytest.mark.parametrize("text", ["\x1b]" * 200_000, "\x1b[" + "1;" * 200_000, "\x1b]" + "x" * 400_000])
def test_control_strings_take_linear_time(text: str) -> None:
    begun = time.process_time()
    legible(text)
    assert time.process_time() - begun < 1


def test_characters_that_turn_the_direction_are_named() -> None:
    assert list(turning("a\u202eb\u2066")) == [("a", False), ("U+202E", True), ("b", False), ("U+2066", True)]
    assert list(turning("")) == [("", False)]
