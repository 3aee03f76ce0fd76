"""What is measured of the user's side of a conversation: each feature has a name in plain words and one definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Literal

import numpy as np

from vivavoce.comparing.similarity import near_repeats
from vivavoce.comparing.text import fold, split_words
from vivavoce.errors import GraderFault
from vivavoce.features.realism.acts import asks, does
from vivavoce.features.realism.user_side import UserSide
from vivavoce.penelope.checks.voice import jargon_in
from vivavoce.stats.resampling import Floats

ENGLISH = "en"
FEWEST_WORDS = 4
"""Shorter messages, such as "Yes, please.", may be said again."""

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:'[^\W_]+)?"
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_END = tuple(".!?。！？…")
_PUNCTUATION = re.compile(r"[,;:()\"“”–—-]")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)

Unit = Literal["count", "ratio", "share"]
Measure = Callable[[UserSide], float | None]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: its `name` reads after "simulated users: ", `what` defines it, and `unit` says what a value is.

    A `share` is shown in percent. One that is `english` needs English words, and is not measured in other languages.
    `of` returns None where a conversation has nothing to measure.
    """

    key: str
    name: str
    what: str
    of: Measure
    unit: Unit = "share"
    english: bool = False


def measure(sides: Sequence[UserSide], english: Sequence[bool]) -> Floats:
    """Return a row for each conversation and a column for each of `FEATURES`; NaN where there is nothing to measure.

    `english` says for each conversation whether it is taken to be English.
    """
    rows = [
        [_or_nan(feature.of(side)) if is_english or not feature.english else np.nan for feature in FEATURES]
        for side, is_english in zip(sides, english, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(sides), len(FEATURES))


def words(text: str) -> list[str]:
    """Return the words of a text in small letters; each Chinese, Japanese or Korean sign is one."""
    return _WORD.findall(fold(text))


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _share(which: Callable[[str], bool], side: UserSide) -> float:
    return fmean(map(which, side.messages))


def _lengths(side: UserSide) -> list[int]:
    return [len(words(message)) for message in side.messages]


def _sentence_length(side: UserSide) -> float | None:
    lengths_of_all = [len(words(sentence)) for message in side.messages for sentence in _SENTENCE.split(message)]
    return fmean(lengths) if (lengths := [length for length in lengths_of_all if length]) else None


def _unevenness(side: UserSide) -> float | None:
    lengths = _lengths(side)
    mean = fmean(lengths)
    return float(np.std(lengths)) / mean if len(lengths) > 1 and mean else None


def _details(message: str) -> Iterator[str]:
    """Yield numbers, codes, addresses, and names: words with a digit, an at sign, or a capital within a sentence."""
    for sentence in _SENTENCE.split(message):
        for place, word in enumerate(sentence.split()):
            bare = word.strip(".,;:!?()\"'“”’")
            digit = any(map(str.isdigit, bare))
            is_name = place > 0 and bare[:1].isupper() and bare not in ("I", "I'm", "I'd", "I'll", "I've", "OK")
            if digit or "@" in bare or is_name:
                yield fold(bare)


def _new_details(side: UserSide) -> list[int]:
    """Return how many details each message tells that neither side said before."""
    known = ""
    details_so_far: set[str] = set()
    counts: list[int] = []
    for message, before in zip(side.messages, side.before, strict=True):
        known += f"\n{fold(before)}"
        fresh = {detail for detail in _details(message) if detail not in details_so_far and detail not in known}
        details_so_far |= fresh
        counts.append(len(fresh))
    return counts


def _details_a_message(side: UserSide) -> float:
    return fmean(_new_details(side))


def _told_at_once(side: UserSide) -> float | None:
    counts = _new_details(side)
    return counts[0] / sum(counts) if sum(counts) >= 2 else None


def _new_words(side: UserSide) -> float | None:
    """Return the mean number of words of a message, after the first, that the user did not use before."""
    seen: set[str] = set()
    counts: list[int] = []
    for message in side.messages:
        fresh = set(words(message)) - seen
        seen |= fresh
        counts.append(len(fresh))
    return fmean(counts[1:]) if len(counts) > 1 else None


def _taken_up(side: UserSide) -> float | None:
    """Return which part of the user's longer words are in the answer before."""
    shares: list[float] = []
    for message, before in zip(side.messages, side.before, strict=True):
        own = {word for word in words(message) if len(word) > 3}
        if own and before:
            shares.append(len(own & set(words(before))) / len(own))
    return fmean(shares) if shares else None


def _repeats(side: UserSide) -> float | None:
    long = [split_words(message) for message in side.messages if len(words(message)) >= FEWEST_WORDS]
    try:
        return len(near_repeats(long)) / len(long) if len(long) > 1 else None
    except GraderFault:  # too many messages to compare each with all earlier ones
        return None


def _begins_with_capital(side: UserSide) -> float | None:
    first = [letter for message in side.messages if (letter := next(filter(str.isalpha, message), ""))]
    cased = [letter.isupper() for letter in first if letter.lower() != letter.upper()]
    return fmean(cased) if cased else None


def _ends_with_stop(message: str) -> bool:
    return message.rstrip("\"'”’) \n").endswith(_END)


def _punctuation(side: UserSide) -> float | None:
    length = sum(_lengths(side))
    return 100 * sum(len(_PUNCTUATION.findall(message)) for message in side.messages) / length if length else None


def _is_laid_out(message: str) -> bool:
    return "\n" in message.strip() or _LIST_ITEM.search(message) is not None


def _closes(side: UserSide) -> float:
    last_message = side.messages[-1]
    return does("thanks", last_message) or does("says goodbye", last_message)


def _leaves_open(side: UserSide) -> float:
    role, text = side.last
    return role == "assistant" and asks(text)


def _gives_away(side: UserSide) -> float:
    return _share(lambda message: next(jargon_in(message), None) is not None, side)


def _act(act: str, name: str, what: str) -> Feature:
    return Feature(act, name, f"share of messages {what}", partial(_share, partial(does, act)), english=True)


def _messages(key: str, name: str, what: str, which: Callable[[str], bool]) -> Feature:
    return Feature(key, name, f"share of messages {what}", partial(_share, which))


FEATURES: tuple[Feature, ...] = (
    Feature("messages", "messages per conversation", "messages of the user", lambda s: len(s.messages), "count"),
    Feature("words", "words per message", "mean number of words of a message", lambda s: fmean(_lengths(s)), "count"),
    Feature("first_words", "words of the first message", "number of words in it", lambda s: _lengths(s)[0], "count"),
    Feature("sentence_words", "words per sentence", "mean number of words of a sentence", _sentence_length, "count"),
    Feature(
        "unevenness",
        "variation of length",
        "standard deviation of words per message, over their mean",
        _unevenness,
        "ratio",
    ),
    _messages("questions", "messages that ask", "with a question mark", asks),
    Feature(
        "details",
        "new details per message",
        "mean number of numbers, codes, addresses and names in a message that neither side said before",
        _details_a_message,
        "count",
    ),
    Feature(
        "at_once",
        "details given at once",
        "the share of the user's details that is in the first message, if there are two or more",
        _told_at_once,
    ),
    Feature(
        "new_words",
        "new words per later message",
        "mean number of words in a message after the first that the user has not used before",
        _new_words,
        "count",
    ),
    Feature(
        "taken_up",
        "words taken from the answer",
        "the share of the user's words with at least four letters that the previous answer contains",
        _taken_up,
    ),
    Feature(
        "repeats",
        "repeated messages",
        f"share of messages of {FEWEST_WORDS} words or more that nearly repeat an earlier one",
        _repeats,
    ),
    Feature(
        "capitals",
        "messages starting with a capital",
        "share of messages whose first letter is a capital, in scripts that have them",
        _begins_with_capital,
    ),
    _messages("stops", "messages ending with punctuation", "that end with . ! ? or …", _ends_with_stop),
    Feature(
        "punctuation",
        "commas and the like",
        "commas, colons, brackets, quotation marks and dashes in 100 words",
        _punctuation,
        "count",
    ),
    _messages(
        "exclamations", "messages with a !", "with an exclamation mark", lambda text: "!" in text or "！" in text
    ),
    _messages("layout", "messages of several lines", "with a line break or a list", _is_laid_out),
    Feature(
        "leaves_open",
        "leaves a question open",
        "whether the conversation ends with a question of the assistant",
        _leaves_open,
    ),
    _act("greets", "messages that greet", "that begin with a greeting"),
    _act("thanks", "messages that thank", "with words of thanks"),
    _act("polite", "polite messages", "with please, could you, and the like"),
    _act("confirms", "messages that confirm", "that begin with yes, right, and the like"),
    _act("refuses", "messages that refuse", "that begin with no, never mind, and the like"),
    _act("corrects", "messages that correct", "that take something back or set it right"),
    _act("complains", "messages that complain", "with words of complaint"),
    _act(
        "informal", "informal spelling", "with short forms, left-out apostrophes or one of a few frequent misspellings"
    ),
    Feature("closes", "ends with thanks or goodbye", "whether the user's last message does", _closes, english=True),
    Feature("jargon", "tester-like wording", "share of messages that give a tester away", _gives_away, english=True),
)
"""All features, in the order in which a reader would ask for them."""
