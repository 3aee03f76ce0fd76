"""Whether two arguments mean the same thing, and whether a message mentions it: 1042 and "1042" are one order."""

from __future__ import annotations

import json
import re

import regex
from pydantic import JsonValue

from vivavoce.comparing.text import NOT_AFTER_WORD, NOT_BEFORE_WORD, FoldedText, fold, fold_encoding

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def identity(value: JsonValue) -> str:
    """Return what two values have in common that mean the same thing."""
    written = as_written(value)
    return json.dumps(value, sort_keys=True) if written is None else f"={fold_encoding(written)}"


def alike(a: JsonValue, b: JsonValue) -> bool:
    """Say whether two values mean the same thing: equal values, and a number and its digits as text."""
    return identity(a) == identity(b)


def mentions(text: str, value: JsonValue) -> bool:
    """Return whether a text contains a value as whole words, in any case and encoding; values are texts or numbers.

    A number is no part of a longer one: 24 is in 24.00, and not in 24.90 or 24,000. A text with a digit is no part of a
    longer one with hyphens: A-17 is not in A-17-B.
    """
    written = as_written(value)
    if not written:
        return False
    if _NUMBER.fullmatch(written):
        return _mentions_number(text, written)
    folded = FoldedText(fold(text))  # so that places in it are those of the folded text
    places = folded.find_all(written, whole=True)
    if any(map(str.isdigit, written)):
        return any(not _goes_on(folded.text, start, end) for start, end in places)
    return next(places, None) is not None


def _goes_on(text: str, start: int, end: int) -> bool:
    """Return whether a hyphen joins a part of a text to more letters or digits."""
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    return (len(before) == 2 and before[0].isalnum() and before[1] == "-") or (after[:1] == "-" and after[1:].isalnum())


def _mentions_number(text: str, number: str) -> bool:
    zeros = "0*" if "." in number else r"(?:\.0+)?"
    whole = rf"(?<!\d[.,]){re.escape(number)}{zeros}(?![.,]\d)"
    return regex.search(f"{NOT_AFTER_WORD}{whole}{NOT_BEFORE_WORD}", text) is not None


def as_written(value: JsonValue) -> str | None:
    """Return a text or a number as people write it, None for anything else."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
