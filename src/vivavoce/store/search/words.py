"""The words of a text: what a search compares, the same in both databases, and their positions.

A word is a run of letters and digits without regard to case and accents. Scripts without spaces between words are split
into characters, and a search word there is a sequence of characters.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import regex

LONGEST = 30_000
"""Maximum characters of a passage; PostgreSQL numbers no more than 16,383 words of a text."""

BEFORE, AFTER = 40, 120
"""Characters of a snippet before and after the first word."""

_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(
    rf"[{_SPACELESS}]\p{{M}}*|[[\p{{L}}\p{{N}}]--[{_SPACELESS}]][[\p{{L}}\p{{N}}\p{{M}}]--[{_SPACELESS}]]*",
    regex.VERSION1,
)
_ASCII = str.maketrans(
    {chr(code): chr(code).lower() if chr(code) in string.ascii_letters + string.digits else " " for code in range(128)}
)


class Snippet(NamedTuple):
    """An excerpt of a text, with the position of the searched word."""

    text: str
    start: int
    end: int


def folded(text: str) -> str:
    """Return the words of a text, separated by spaces, in the form used for comparison."""
    if text.isascii():
        return text.translate(_ASCII)
    return " ".join(_fold(found) for found in _WORD.findall(text))


def stretches(texts: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts, passage by passage."""
    held: list[str] = []
    size = 0
    for text in texts:
        for start in range(0, len(text), LONGEST):
            piece = text[start : start + LONGEST]
            if size + len(piece) > LONGEST:
                yield " ".join(held)
                held, size = [], 0
            held.append(folded(piece))
            size += len(piece)
    if size:
        yield " ".join(held)


def phrases(text: str) -> list[str]:
    """Return the phrases of a query: for each typed word its parts, which must be adjacent."""
    return list(dict.fromkeys(phrase for word in text.split() if (phrase := " ".join(folded(word).split()))))


def snippet(text: str, query_words: list[str]) -> Snippet | None:
    """Return the excerpt of a text around the first of the words, None if it has none of them."""
    first = {phrase.partition(" ")[0] for phrase in query_words}
    for found in _WORD.finditer(text):
        if _fold(found[0]) in first:
            start, end = found.span()
            begin = max(0, start - BEFORE)
            return Snippet(text[begin : end + AFTER], start - begin, end - begin)
    return None


@cache
def _base(character: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))


def _fold(word: str) -> str:
    lower = word.casefold()
    return lower if lower.isascii() else "".join(map(_base, lower))
