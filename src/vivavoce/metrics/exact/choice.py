"""Options that are one of a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from vivavoce.errors import UsageError, did_you_mean

T = TypeVar("T", bound=str)


def chosen(what: str, noun: str, word: str, known: Sequence[T]) -> T:
    """Return the one of the known words that `word` is.

    Raises:
        UsageError: the word is not among them; the message begins with `what`, and offers the closest one.
    """
    for candidate in known:
        if candidate == word:
            return candidate
    raise UsageError(f"{what}: no {noun} '{word}'{did_you_mean(str(word), known)}")
