"""Whether a text says some words or a number."""

from __future__ import annotations

from vivavoce.comparing.numbers import exact, may_state, read_number, states
from vivavoce.comparing.text import FoldedText, same_text


def says(text: FoldedText, wanted: str | float, locale: str | None = None) -> bool:
    """Return whether a text contains some words, in any case and encoding, or a number as a whole."""
    return text.contains(wanted) if isinstance(wanted, str) else states(text.text, wanted, locale)


def may_say(text: FoldedText, wanted: str | float, locale: str | None = None) -> bool:
    """Return whether a text may contain some words or a number, which is what a ban has to assume."""
    return text.contains(wanted) if isinstance(wanted, str) else may_state(text.text, wanted, locale)


def is_said(text: str, wanted: str | float, locale: str | None = None) -> bool:
    """Return whether a text is another in any encoding, or a number, except for white space at its ends."""
    if isinstance(wanted, str):
        return same_text(text, wanted)
    return read_number(text, locale) == exact(wanted)
