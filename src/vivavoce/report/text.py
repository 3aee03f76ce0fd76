"""Text from models and targets made safe for a terminal: no control sequences, and one line where one is wanted."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def safe(text: str) -> str:
    """Return a text without control characters, escape sequences and marks that reverse the reading direction."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 sample`, `2 samples`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, width: int = 100) -> str:
    """Return a text as one line of at most `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"
