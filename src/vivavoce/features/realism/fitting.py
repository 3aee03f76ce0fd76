"""Personas and settings for the tester, fitted to real conversations: made of numbers and fixed words alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vivavoce.errors import UsageError
from vivavoce.features.realism.features import FEATURES
from vivavoce.features.realism.kinds import find_kinds
from vivavoce.features.realism.measuring import Both, usual_language
from vivavoce.features.realism.reading import UserSides
from vivavoce.files.plain_yaml import yaml_text
from vivavoce.report.text import count, one_line
from vivavoce.stats.resampling import Floats

MIN_CONVERSATIONS = 20
"""Conversations that it takes to fit anything."""
MAX_TURNS_PERCENTILE = 95.0
"""The percentile of the messages of a conversation that is the most a tester gets."""
USUAL = (10.0, 90.0)
"""Percentiles between which a value is usual."""
RAREST = 0.02
"""What a smaller share of messages has is left out."""

_TRAILING = re.compile(r" +$", re.MULTILINE)
_PLACES = {feature.key: place for place, feature in enumerate(FEATURES)}
_NAMES: Mapping[str, tuple[str, str]] = {
    "words": ("brief", "wordy"),
    "questions": ("telling", "asking"),
    "messages": ("quick", "lasting"),
    "polite": ("blunt", "polite"),
    "informal": ("careful", "casual"),
    "capitals": ("small letters", "capitals"),
    "stops": ("no full stops", "full stops"),
    "closes": ("leaving", "thanking"),
}
"""What a kind is called that has less, or more, of a feature than the others."""
_LANGUAGES: Mapping[str, str] = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """The part of a suite that was fitted, as data, and the conversations that it was fitted to and held back."""

    part: Mapping[str, Any]
    conversations: int
    held_back: int
    source: str

    def text(self) -> str:
        """Return the file: YAML below a comment that says where it comes from."""
        return (
            f"# Personas fitted to {count(self.conversations, 'conversation')} of {one_line(self.source)}; "
            f"{self.held_back:,} are held back.\n"
            "# Put this into a suite with `driver: penelope`. A row's own persona goes before these.\n"
        ) + _TRAILING.sub("", yaml_text(dict(self.part)))


def fit_personas(real: UserSides) -> Fitted:
    """Fit personas to the half of real conversations that is not held back.

    Raises:
        UsageError: there are fewer than 20 conversations in that half.
    """
    part = real.only(held_back=False)
    number = len(part.sides)
    if number < MIN_CONVERSATIONS:
        raise UsageError(
            f"{real.name}: too few conversations to fit personas: {number} in the training half, at least "
            f"{MIN_CONVERSATIONS} needed"
        )
    both = Both(part, part)
    rows = both.rows[:number]
    kinds = find_kinds(rows)
    of = np.zeros(number, dtype=np.intp) if kinds is None else kinds.nearest(rows)
    language = _language(part)
    personas: list[dict[str, Any]] = []
    for kind in range(int(of.max()) + 1):
        inside = of == kind
        name = _name(rows, inside, [persona["name"] for persona in personas])
        share = round(float(inside.mean()), 3)
        personas.append({"share": share, "name": name, **_persona(rows[inside]), **language})
    messages = rows[:, _PLACES["messages"]]
    most = max(2, int(np.ceil(np.percentile(messages, MAX_TURNS_PERCENTILE))))
    return Fitted({"tester": {"max_turns": most, "personas": personas}}, number, len(real.sides) - number, real.name)


def _language(part: UserSides) -> dict[str, str]:
    """Return the field for the language that most users write, none for English or one without a name here."""
    name = _LANGUAGES.get(usual_language(part) or "")
    return {} if name is None else {"language": name}


def _name(rows: Floats, inside: np.ndarray, used_names: list[str]) -> str:
    """Return a name by the feature in which a kind differs most from all, which no other kind has."""
    apart: list[tuple[float, str]] = []
    for key, (less, more) in _NAMES.items():
        column = rows[:, _PLACES[key]]
        known = ~np.isnan(column)
        spread = float(column[known].std()) if known.any() else 0.0
        if spread > 1e-9 and (known & inside).any():
            by = (float(column[known & inside].mean()) - float(column[known].mean())) / spread
            apart.append((abs(by), more if by > 0 else less))
    names = [name for _, name in sorted(apart, reverse=True) if name not in used_names]
    return names[0] if names else f"user {len(used_names) + 1}"


def _persona(rows: Floats) -> dict[str, str]:
    """Return the fields of a persona: what each says is a figure of these rows, or a fixed word for one."""
    fields = {
        "style": "; ".join(_style(rows)),
        "knowledge": "; ".join(_knowledge(rows)),
        "patience": "; ".join(_patience(rows)),
    }
    return {name: words for name, words in fields.items() if words}


def _style(rows: Floats) -> Iterator[str]:
    words = _values(rows, "words")
    low, high = map(float, np.percentile(words, USUAL))
    yield f"about {_whole(np.median(words))} words a message{_span(low, high)}"
    yield f"begins with about {_whole(np.median(_values(rows, 'first_words')))} words"
    if (small := _mean(rows, "capitals")) is not None and small < 0.5:
        yield "mostly no capital at the beginning of a message"
    if (stops := _mean(rows, "stops")) is not None and stops < 0.5:
        yield "mostly no full stop at the end of a message"
    yield from _describe_frequency(rows, "questions", "asks something")
    yield from _describe_frequency(rows, "polite", "says please or could you")
    yield from _describe_frequency(rows, "thanks", "says thanks")
    yield from _describe_frequency(rows, "informal", "uses short forms such as pls, or leaves out apostrophes")
    yield from _describe_frequency(rows, "exclamations", "writes an exclamation mark")


def _knowledge(rows: Floats) -> Iterator[str]:
    details = _mean(rows, "details")
    if details is not None:
        yield f"tells about {details:.1f} new numbers or names a message"
    yield from _describe_frequency(rows, "corrects", "corrects what was said before")


def _patience(rows: Floats) -> Iterator[str]:
    messages = _values(rows, "messages")
    low, high = map(float, np.percentile(messages, USUAL))
    usual = count(_whole(np.median(messages)), "message")
    yield f"writes about {usual} in all{_span(low, high)}, then leaves"
    closes = _mean(rows, "closes")
    if closes is not None:
        yield "ends with thanks or goodbye" if closes >= 0.5 else "leaves without thanks or goodbye"
    yield from _describe_frequency(rows, "complains", "complains")


def _describe_frequency(rows: Floats, key: str, what: str) -> Iterator[str]:
    """Yield how often something is done, in fixed words; nothing where it was not measured."""
    share = _mean(rows, key)
    if share is None or share < RAREST:
        return
    if share > 0.75:
        yield f"{what} in nearly every message"
    else:
        every = round(1 / share)
        yield f"{what} in {'most messages' if every < 2 else f'one of {every} messages'}"


def _values(rows: Floats, key: str) -> Floats:
    column = rows[:, _PLACES[key]]
    return column[~np.isnan(column)]


def _mean(rows: Floats, key: str) -> float | None:
    values = _values(rows, key)
    return float(values.mean()) if len(values) else None


def _span(low: float, high: float) -> str:
    return "" if _whole(low) == _whole(high) else f", {_whole(low)} to {_whole(high)}"


def _whole(value: float | np.floating[Any]) -> int:
    return max(1, round(float(value)))
