"""Whether a text says some words or a number."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from vivavoce.comparing.text import FoldedText, same_text


def says(text: FoldedText, wanted: str | float) -> bool:
    """Return whether a text contains some words, in any case and encoding, or a number as a whole."""
    if not isinstance(wanted, str):
        return _number(wanted).search(text.text) is not None
    return text.contains(wanted)


def is_said(text: str, wanted: str | float) -> bool:
    """Return whether a text is another in any encoding, or a number, except for white space at its ends."""
    if isinstance(wanted, str):
        return same_text(text, wanted)
    return _number(wanted).fullmatch(text.strip()) is not None


@lru_cache(maxsize=4096)
def _number(wanted: float) -> re.Pattern[str]:
    """Return what finds a number that is no part of another one: 24.9 is in 24.90, and not in 24.95 or 124.9."""
    whole, _, share = json.dumps(wanted).partition(".")
    digits = share.rstrip("0") if share.isdigit() else share
    decimals = rf"\.{re.escape(digits)}0*" if digits else r"(?:\.0+)?"
    return re.compile(rf"(?<!\d)(?<!\d\.){re.escape(whole)}{decimals}(?!\d)(?!\.\d)")
