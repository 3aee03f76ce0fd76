"""Whether a text says some words or a number, however they are set."""

from __future__ import annotations

import json
import re
from functools import lru_cache

_SET_ALIKE = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2011": "-", "\u00ad": None, "\u200b": None}
)
"""Curly quotes, a hyphen that does not break, and characters that nobody sees."""


def plain(text: str) -> str:
    """Return a text in small letters, with straight quotes, and one space for any white space."""
    straight = text if text.isascii() else text.translate(_SET_ALIKE)
    return " ".join(straight.lower().split())


def says(text: str, plain_text: str, wanted: str | float) -> bool:
    """Say whether a text has words in it, in any case, or a number as a whole; `plain_text` is the text as plain.

    Words that are plain are found however they are set. In others, quotes and white space are meant as they are.
    """
    if not isinstance(wanted, str):
        return _number(wanted).search(text) is not None
    small = wanted.lower()
    return small in text.lower() or (_is_plain(small) and small in plain_text)


def is_said(text: str, wanted: str | float) -> bool:
    """Say whether a text is another or a number, white space at its ends aside."""
    if isinstance(wanted, str):
        return text.strip() == wanted.strip()
    return _number(wanted).fullmatch(text.strip()) is not None


@lru_cache(maxsize=4096)
def _is_plain(small: str) -> bool:
    return bool(small) and plain(small) == small


@lru_cache(maxsize=4096)
def _number(wanted: float) -> re.Pattern[str]:
    """Return what finds a number that is no part of another one: 24.9 is in 24.90, and not in 24.95 or 124.9."""
    whole, _, share = json.dumps(wanted).partition(".")
    digits = share.rstrip("0") if share.isdigit() else share
    decimals = rf"\.{re.escape(digits)}0*" if digits else r"(?:\.0+)?"
    return re.compile(rf"(?<!\d)(?<!\d\.){re.escape(whole)}{decimals}(?!\d)(?!\.\d)")
