"""Phrases that are looked up in folded text as whole words: lists of them, and patterns for any of a list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

import regex

from vivavoce.comparing.text import BOUNDARY, fold


def read_phrases(file: str) -> list[str]:
    """Return the lines of a list in the folder of this module, except empty ones and those that begin with `#`."""
    text = files("vivavoce.metrics.exact").joinpath(file).read_text(encoding="utf-8")
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def escape_phrases(phrases: Iterable[str]) -> list[str]:
    """Return phrases as expressions that match just them in folded text."""
    return [re.escape(folded).replace(r"\ ", " ") for phrase in phrases if (folded := fold(phrase))]


def compile_phrases(expressions: Iterable[str]) -> regex.Pattern[str] | None:
    """Return one pattern for any of these expressions as whole words, None for no expressions.

    It is made for text that `fold` returned: expressions are in lower case, with plain apostrophes and single spaces.
    """
    either = "|".join(expressions)
    return regex.compile(f"{BOUNDARY}(?:{either}){BOUNDARY}") if either else None
