from __future__ import annotations

import pytest

from vivavoce.safe_text import safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", "0;title"),
        ("a\u202eb\u2066c", "abc"),
        ("half a pair \ud800", "half a pair ?"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_what_is_shown_controls_nothing(text: str, shown: str) -> None:
    assert safe(text) == shown
