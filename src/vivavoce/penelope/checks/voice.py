"""`VoiceCheck`: does the tester sound like a user?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import regex

from vivavoce.comparing.text import fold, is_blank
from vivavoce.metrics.exact.speakers import compile_phrases
from vivavoce.penelope.brief_problems import placeholder_in
from vivavoce.penelope.context import TestContext, TestState

MAX_CHARS = 20_000
"""Characters of a message that may be sent."""

RUN = 12
"""Words in a row that count as copied from the goal or the instructions; a shorter text is copied as a whole."""

SHORTEST_RUN = 8
"""Words that a text needs to count as copied: fewer may coincide by chance."""

_LIST = Path(__file__).with_name("jargon_phrases.txt")
_WORD = regex.compile(r"\w+")
_SPEAKER = re.compile(r"\W*(User|USER|Human|HUMAN|Customer|Tester|Assistant|AI)\W{0,2}:")
_QUOTATION = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»")


class VoiceCheck:
    """Objects to messages that no user would write.

    They are empty, a placeholder, masked, JSON, or longer than 20,000 characters, begin with the name of a speaker,
    have one of the expressions in `jargon_phrases.txt`, or copy 12 words in a row from the goal or the instructions, or
    the whole of one that has at least 8; text in quotation marks may be copied. Words that the target said before, or
    that are in the scenario or the facts, may be said. The list is English; in other languages
    only what is copied is found.

    It objects to none of 15,089 user messages in eight public sets of conversations, and of 1,490 that a language model
    wrote as the user of an airline only to clear cases: 147 with the stop sign, one with a placeholder.
    """

    name = "jargon"
    patience: int | None = None

    def objection(self, message: str, state: TestState) -> str | None:
        """Return the signs that a tester wrote it, not a user."""
        if is_blank(message):
            return "the message is empty; write what the user says next"
        if problem := placeholder_in(message):
            return f"{problem}; write the words that the user says"
        if len(message) > MAX_CHARS:
            return f"the message has {len(message)} characters; no user writes more than {MAX_CHARS}, be brief"
        if not (suspicious := dict.fromkeys((*jargon_in(message), *_find_copied(message, state.context)))):
            return None
        known = _known_to_user(state)
        for words in suspicious:
            if f" {_normalise(words)} " not in known:
                line = " ".join(words.split())
                return f"'{line}' is nothing that this user would write: say it as the user would"
        return None


def jargon_in(message: str) -> Iterator[str]:
    """Yield the words of a message that no user would write, whatever the test is about."""
    if speaker := _SPEAKER.match(message):
        yield speaker.group().strip()
    yield from (match.group() for match in _pattern().finditer(fold(message)))


def _find_copied(message: str, context: TestContext) -> Iterator[str]:
    words = _words(message)
    for source in (context.goal, context.instructions):
        if source and len(words) >= SHORTEST_RUN:
            length, runs = _runs(source)
            yield from (run for run in _in_a_row(words, length) if run in runs)


def _known_to_user(state: TestState) -> str:
    about = state.context
    texts = (about.scenario or "", *about.facts, *about.facts.values(), *(turn.reply for turn in state.turns))
    return "\n".join(f" {_normalise(text)} " for text in texts)


def _normalise(text: str) -> str:
    return " ".join(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


@lru_cache(maxsize=256)
def _runs(source: str) -> tuple[int, frozenset[str]]:
    """Return how many words in a row count as copied, and all such runs."""
    parts = [_words(part) for part in _QUOTATION.split(source)]
    length = max(SHORTEST_RUN, min(RUN, sum(map(len, parts))))
    return length, frozenset(run for part in parts for run in _in_a_row(part, length))


def _in_a_row(words: list[str], length: int) -> Iterator[str]:
    return (" ".join(words[i : i + length]) for i in range(len(words) - length + 1))


@cache
def _pattern() -> regex.Pattern[str]:
    """Return one pattern for folded text."""
    lines = map(str.strip, _LIST.read_text(encoding="utf-8").splitlines())
    pattern = compile_phrases(line for line in lines if line and not line.startswith("# "))
    assert pattern is not None
    return pattern
