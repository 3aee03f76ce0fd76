"""Findings about a reply by rules: its length, tone and form, and what it does. The lists of words are English."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache

import regex

from vivavoce.comparing.text import fold
from vivavoce.metrics.exact.refusal import find_refusal
from vivavoce.metrics.exact.sentiment import has_lexicon, sentiment
from vivavoce.metrics.exact.speakers import compile_phrases
from vivavoce.penelope.tools.analysis import excerpt, listing
from vivavoce.penelope.tools.sentences import sentences, stems, words
from vivavoce.penelope.tools.spans import find_spans

MAX_TONE_CHARS = 20_000
"""Characters whose tone is measured."""

_POSITIVE = (
    "yes|(?:i|we|you) can|(?:i|we) will|happy|help|certainly|glad|of course|absolutely|great|perfect|thank you|thanks"
    "|welcome"
)
_NEGATIVE = (
    "no(?! (?:problem|worries|worry|doubt|longer than|later than|more than|less than|matter|extra|additional|need|cost"
    "|charge|fee)s?(?!\\w))|cannot|can not|can't|won't|will not|unable|unfortunately|sorry|regret|impossible|couldn't"
)
_HEDGES = (
    "perhaps|maybe|possibly|probably|presumably|apparently|might|i think|i believe|i guess|i assume|i'm not sure"
    "|i am not sure|not certain|it seems|it appears|it depends|as far as i know|to my knowledge|more or less|roughly"
)
_POLICY = (
    "must|may not|shall|required|requires?|eligible|eligibility|polic(?:y|ies)|terms|conditions?|refund(?:s|ed|able)?"
    "|returns?|returned|non-refundable|warranty|guarantee[ds]?|deadline|allowed|permitted|prohibited|entitled"
    "|provided that|subject to|only if|unless|within \\d{1,4}(?: \\w+){0,2}|no later than|up to \\d{1,4}"
    "|at least \\d{1,4}|\\d{1,4}[- ](?:business |working )?days?"
)
_BULLET = re.compile(r"[-*+•‣◦·–](?:\s+\S|$)")
_NUMBERED = re.compile(r"(?:\*\*)?\d{1,3}[.)]\s+\S")
_HEADING = re.compile(r"#{1,6}\s+\S")
_LINK = re.compile(r"\]\(\S|https?://\S")
_CODE = re.compile(r"```|~~~|`[^`\n]{1,200}`")
_FIGURES = frozenset(("date", "time", "money", "quantity", "number"))


@cache
def _pattern(expression: str) -> regex.Pattern[str]:
    pattern = compile_phrases([expression])
    assert pattern is not None
    return pattern


def _matches(expression: str, text: str) -> list[str]:
    """Return what matches, folded, each once and in order."""
    return list(dict.fromkeys(match[0] for match in _pattern(expression).finditer(fold(text))))


def length(text: str) -> str:
    """Say how many words and sentences there are."""
    count = sum(1 for sentence in sentences(text) if any(map(str.isalnum, sentence)))
    return f"Response length: {_many(len(words(text)), 'word')}, {_many(count, 'sentence')}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def tone(text: str) -> tuple[str, float | None]:
    """Name the tone, with the words that show it, and the sentiment from -1 to 1 by an English lexicon.

    Without the extra that has the lexicon, the sentiment is None.
    """
    text = text[:MAX_TONE_CHARS]
    negative = _matches(_NEGATIVE, text)
    positive = _matches(_POSITIVE, _pattern(_NEGATIVE).sub(" ", fold(text)))
    score = sentiment(text) if has_lexicon() else None
    basis = [f"words: {listing([*positive, *negative])}"] if positive or negative else []
    basis += [f"English lexicon {score:+.2f}" if score is not None else "no lexicon installed"]
    return f"Tone: {_tone_name(len(positive), len(negative), score or 0.0)} ({'; '.join(basis)})", score


def _tone_name(positive: int, negative: int, score: float) -> str:
    if positive and (negative or score <= -0.05):
        return "mixed"
    if negative or score <= -0.05:
        return "generally negative"
    return "generally positive/helpful" if positive or score >= 0.05 else "neutral"


def structure(text: str) -> str:
    """Say which elements a text has besides sentences."""
    lines = Counter(kind for line in text.splitlines() if (kind := _kind(line.strip())))
    parts = [_many(count, kind) for kind, count in lines.items() if kind != "row"]
    parts += ["a table"] if lines["row"] > 1 else []
    parts += ["links"] if _LINK.search(text) else []
    parts += ["code"] if _CODE.search(text) else []
    parts += ["numerical information"] if any(span.kind in _FIGURES for span in find_spans(text)) else []
    return "Structure: contains " + ", ".join(parts) if parts else "Structure: plain sentences"


def _kind(line: str) -> str:
    for kind, pattern in (("bullet point", _BULLET), ("numbered point", _NUMBERED), ("heading", _HEADING)):
        if pattern.match(line):
            return kind
    return "row" if len(line) > 2 and line[0] == line[-1] == "|" else ""


def policy(text: str) -> str:
    """Say whether rules, conditions or terms are stated."""
    terms = _matches(_POLICY, text)
    return f"Policy check: contains policy language ({listing(terms)})" if terms else "Policy check: no policy language"


def refusal(text: str) -> str | None:
    """Quote the words with which a reply refuses, as `RefusalMetric` finds them."""
    span = find_refusal(text)
    return None if span is None else f'Refusal: "{excerpt(text[span.start : span.end])}"'


def question(text: str) -> str | None:
    """Quote the last question that a reply asks back."""
    questions = [sentence for sentence in sentences(text) if sentence.rstrip("\"'”’)*_ ").endswith(("?", "？"))]
    return f'Question asked back: "{excerpt(questions[-1])}"' if questions else None


def hedging(text: str) -> str | None:
    """List the words with which a reply leaves open whether it is right."""
    hedges = _matches(_HEDGES, text)
    return f"Hedging: {listing(hedges)}" if hedges else None


def coverage(text: str, focus: str, besides: Collection[str]) -> str | None:
    """Say which words of what was asked for occur in a reply, `besides` some stems that ask for a check."""
    asked_for = {root: word for root, word in stems(focus).items() if root not in besides}
    there = stems(text)
    if not asked_for:
        return None
    present = [word for root, word in asked_for.items() if root in there]
    absent = [word for root, word in asked_for.items() if root not in there]
    parts = [f"mentions {listing(present)}"] if present else []
    parts += [f"does not mention {listing(absent)}"] if absent else []
    return f"Focus: {'; '.join(parts)}"


def context_kept(text: str, earlier: Sequence[str]) -> str:
    """Say which words of earlier messages a reply takes up."""
    there = stems(text)
    earlier_words = {root: word for text_before in earlier for root, word in stems(text_before).items()}
    taken_up = [word for root, word in earlier_words.items() if root in there]
    if not earlier_words:
        return "Context check: nothing was said before"
    if not taken_up:
        return "Context check: takes up no word of what was said before"
    return f"Context check: takes up {listing(taken_up)} of what was said before"
