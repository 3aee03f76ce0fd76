"""The messages of one side, turn by turn and session by session, and phrases and figures of them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean, median
from typing import Literal, TypeVar, get_args

import regex

from vivavoce.comparing.numbers import cuts_number, find_amount, find_possible, numbers_in, read_number
from vivavoce.comparing.text import BOUNDARY, FoldedText, GuardedText, fold, is_blank
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.messages import AnyMessage, SessionMark, mark_of, split_turns
from vivavoce.metrics.measuring import Part
from vivavoce.metrics.result import Evidence

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


Statistic = Literal["mean", "median", "p95", "max"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


def summary(values: Sequence[float], statistic: Statistic) -> float:
    """Return a statistic of at least one value.

    The 95th percentile is by nearest rank: the smallest value that at least 95 % of the values do not exceed.
    """
    match statistic:
        case "mean":
            return fmean(values)
        case "median":
            return float(median(values))
        case "p95":
            return sorted(values)[math.ceil(0.95 * len(values)) - 1]
        case "max":
            return max(values)


def read_phrases(file: str) -> list[str]:
    """Return the lines of a list in the folder of this module, except empty ones and those that begin with `#`."""
    text = files("vivavoce.metrics.exact").joinpath(file).read_text(encoding="utf-8")
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


MAX_PHRASES = 2_000
"""Phrases of its own that a metric looks for."""

_MAX_PHRASE_CHARS = 100_000


def check_phrases(option: str, phrases: Collection[str]) -> Collection[str]:
    """Return the phrases that a metric is given.

    Raises:
        UsageError: they are too many, or too long together, or one shows nothing.
    """
    if any(map(is_blank, phrases)):
        raise UsageError(f"{option} has an entry without visible characters; remove it")
    if len(phrases) > MAX_PHRASES:
        raise UsageError(f"{option} has {len(phrases):,} phrases, at most {MAX_PHRASES:,} allowed")
    if (chars := sum(map(len, phrases))) > _MAX_PHRASE_CHARS:
        raise UsageError(f"{option} has {chars:,} characters, at most {_MAX_PHRASE_CHARS:,} allowed")
    return phrases


def escape_phrases(phrases: Iterable[str]) -> list[str]:
    """Return phrases as expressions that match just them in folded text."""
    return [re.escape(folded).replace(r"\ ", " ") for phrase in phrases if (folded := fold(phrase))]


def compile_phrases(expressions: Iterable[str]) -> regex.Pattern[str] | None:
    """Return one pattern for any of these expressions as whole words, None for no expressions.

    It is made for text that `fold` returned: expressions are in lower case, with plain apostrophes and single spaces.
    """
    either = "|".join(expressions)
    return regex.compile(f"{BOUNDARY}(?:{either}){BOUNDARY}") if either else None


Speaker = Literal["assistant", "user"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)

LONGEST_QUOTE = 240
"""Characters of a message that are shown as evidence."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """The words of one message; `turn` counts from 0, None for what precedes the first user message."""

    turn: int | None
    text: str

    def quote(self, start: int = 0, end: int | None = None) -> Evidence:
        """Return a passage as evidence, cut to a length that can be read."""
        last = min(len(self.text) if end is None else end, start + LONGEST_QUOTE)
        return Evidence(text=self.text[start:last], turn=self.turn, verified=True)


def numbered(part: Part) -> list[tuple[int | None, AnyMessage]]:
    """Return every message with the number of its turn, None for what precedes the first user message."""
    opening: list[tuple[int | None, AnyMessage]] = [(None, message) for message in part.opening]
    return opening + [(part.first + i, message) for i, turn in enumerate(part.turns) for message in turn]


def utterances(part: Part, speaker: Speaker) -> list[Utterance]:
    """Return the messages of one side in order, without those that have no words."""
    return [
        Utterance(turn, message.text)
        for turn, message in numbered(part)
        if message.role == speaker and not is_blank(message.text)
    ]


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A turn of a session; `index` counts from 0."""

    index: int
    mark: SessionMark
    messages: Sequence[AnyMessage]

    def said(self, speaker: Speaker) -> list[Utterance]:
        """Return the messages of one side that have words."""
        return [
            Utterance(self.index, message.text)
            for message in self.messages
            if message.role == speaker and not is_blank(message.text)
        ]


def session_turns(part: Part) -> list[SessionTurn]:
    """Return the turns of the whole conversation that a part is of, none where it has no sessions."""
    turns = split_turns(part.metric_input.messages)[1]
    found = ((index, mark_of(turn), turn) for index, turn in enumerate(turns))
    return [SessionTurn(index, mark, turn) for index, mark, turn in found if mark is not None]


def is_in(part: Part, turn: SessionTurn) -> bool:
    """Say whether a turn is one that is measured."""
    return part.first <= turn.index < part.first + len(part.turns)


def place_in(utterances: Iterable[Utterance], phrase: str) -> tuple[Utterance, int, int] | None:
    """Return the first message that contains a phrase as whole words, and where in it; None where none does.

    A phrase that is a number is found as a number: 12 is in `12.00`, and not in `12,500`.
    """
    number = read_number(phrase)
    for utterance in utterances:
        if number is not None:
            places = (stated for stated in numbers_in(utterance.text) if stated.value == number)
            if (stated := next(places, None)) is not None:
                return utterance, stated.start, stated.end
            continue
        spans = FoldedText(utterance.text).find_all(phrase, whole=True)
        for span in spans:
            if not any(cuts_number(utterance.text, place) for place in span):
                return utterance, span.start, span.end
    return None


def possible_place_in(utterances: Iterable[Utterance], phrase: str) -> tuple[Utterance, int, int] | None:
    """Return the first message that may contain a phrase in any way to read it, which a ban has to assume."""
    number = read_number(phrase)
    for utterance in utterances:
        place = GuardedText(utterance.text).find(phrase, whole=True)
        if place is None and number is not None:
            place = find_possible(utterance.text, number)
        place = place or find_amount(utterance.text, phrase)
        if place is not None:
            start, end = place
            return utterance, start, end
    return None
