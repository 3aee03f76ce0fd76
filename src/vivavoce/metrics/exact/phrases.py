"""Looking for phrases in what was said: whole words, whatever the capitals, the spaces and the form of apostrophes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")


def listed(file: str) -> list[str]:
    """Return the lines of a list beside this module, without empty ones and those that begin with `#`."""
    text = files("vivavoce.metrics.exact").joinpath(file).read_text(encoding="utf-8")
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def literal(phrases: Iterable[str]) -> list[str]:
    """Return phrases as expressions that match just them."""
    return [re.escape(straight(" ".join(phrase.split()))).replace(r"\ ", " ") for phrase in phrases if phrase.strip()]


def compiled(expressions: Iterable[str]) -> re.Pattern[str] | None:
    """Return one pattern for any of these expressions, in which a space is any white space; None for no expressions.

    It is made for text that `straight` returned. What it matches begins and ends at the edge of a word.
    """
    either = "|".join(expression.replace(" ", r"\s+") for expression in expressions)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE) if either else None


def straight(text: str) -> str:
    """Return a text of the same length with every apostrophe in its plain form."""
    return text.translate(_APOSTROPHES)
