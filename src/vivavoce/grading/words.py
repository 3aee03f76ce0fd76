"""Whether a text says some words or a number, however they are set."""

from __future__ import annotations

from functools import lru_cache

from vivavoce.comparing.numbers import exact, read_number, states

_SET_ALIKE = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2011": "-", "\u00ad": None, "\u200b": None}
)
"""Curly quotes, a hyphen that does not break, and characters that nobody sees."""


def plain(text: str) -> str:
    """Return a text in small letters, with straight quotes, and one space for any white space."""
    straight = text if text.isascii() else text.translate(_SET_ALIKE)
    return " ".join(straight.lower().split())


def says(text: str, plain_text: str, wanted: str | float, locale: str | None = None) -> bool:
    """Say whether a text has words in it, in any case, or a number as a whole; `plain_text` is the text as plain.

    Words that are plain are found however they are set. In others, quotes and white space are meant as they are.
    """
    if not isinstance(wanted, str):
        return states(text, wanted, locale)
    small = wanted.lower()
    return small in text.lower() or (_is_plain(small) and small in plain_text)


def is_said(text: str, wanted: str | float, locale: str | None = None) -> bool:
    """Say whether a text is another or a number, white space at its ends aside."""
    if isinstance(wanted, str):
        return text.strip() == wanted.strip()
    return read_number(text, locale) == exact(wanted)


@lru_cache(maxsize=4096)
def _is_plain(small: str) -> bool:
    return bool(small) and plain(small) == small
