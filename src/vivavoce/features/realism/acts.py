"""What a user does with a message, by its words: greets, thanks, confirms, corrects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import regex

from vivavoce.comparing.text import fold
from vivavoce.metrics.exact.speakers import compile_phrases

OPENING = 25
"""Characters from the beginning of a message within which it greets, confirms or refuses."""

QUESTION_MARKS = "?？؟⸮"
"""Those of Latin, Chinese, Arabic and Persian script; the Greek one is a semicolon elsewhere, and is not looked for."""

_AT_THE_BEGINNING = ("greets", "confirms", "refuses")
_HEAD = re.compile(r"\[(.+)\]")


def does(act: str, message: str) -> bool:
    """Return whether a message does something, such as `thanks`, in English words; see `english_phrases.txt`."""
    match = _patterns()[act].search(fold(message))
    return match is not None and (act not in _AT_THE_BEGINNING or match.start() < OPENING)


def asks(message: str) -> bool:
    """Return whether a message has a question mark, of whatever script."""
    return any(sign in message for sign in QUESTION_MARKS)


@cache
def _patterns() -> Mapping[str, regex.Pattern[str]]:
    text = files("vivavoce.features.realism").joinpath("english_phrases.txt").read_text(encoding="utf-8")
    lists: dict[str, list[str]] = {}
    for line in map(str.strip, text.splitlines()):
        if head := _HEAD.fullmatch(line):
            lists[head[1]] = []
        elif line and not line.startswith("#"):
            lists[list(lists)[-1]].append(line)
    patterns = {act: compile_phrases(lines) for act, lines in lists.items()}
    return {act: pattern for act, pattern in patterns.items() if pattern is not None}
