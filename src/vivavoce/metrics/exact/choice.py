"""Options that are one of a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from vivavoce.errors import UsageError, did_you_mean

T = TypeVar("T", bound=str)


def chosen(what: str, noun: str, word: str, known: Sequence[T]) -> T:
    """Return the known word that was given.

    Raises:
        UsageError: there is no such word; the message begins with `what`, and offers the closest one.
    """
    for one in known:
        if one == word:
            return one
    raise UsageError(f"{what}: no {noun} '{word}'{did_you_mean(str(word), known)}")
