"""Sentiment by an English lexicon: that of a speaker's messages, and how it changes."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import Any, Unpack

from vivavoce.errors import MissingExtra
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.exact.speakers import SPEAKERS, Speaker, Utterance, chosen, utterances
from vivavoce.metrics.measuring import ExactMetric, Measured, MeasuringOptions, Part

LONGEST = 1000
"""Characters of a sentence that are looked at together."""
MEASURED = 20_000
"""Characters of a message that are measured, the words of its emoji among them."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


class SentimentLexiconMetric(ExactMetric):
    """Gives the mean sentiment of the messages of the user, or of another `speaker`, by an English lexicon.

    The sentiment of a message is the mean of its sentences, each from -1 (negative) to 1 (positive) by VADER's lexicon
    and rules. Needs a message in which a word of the lexicon occurs, so that other languages are skipped and not called
    neutral. From -1 to 1; higher is better, and, if set, `threshold` or more passes. `details["series"]` has each
    message; its first 20,000 characters are measured. It needs the extra `sentiment`:
    `pip install 'vivavoce[sentiment]'`.

    Known failures: it counts words. Irony, "I killed the process", and a calm description of a disaster are misread.

    Source: C. Hutto, E. Gilbert, VADER (ICWSM 2014), and its advice to average the sentences of longer texts.
    """

    def __init__(self, *, speaker: Speaker = "user", **options: Unpack[MeasuringOptions]) -> None:
        check_lexicon()
        config = MetricConfig(
            class_name=type(self).__name__,
            name="sentiment_lexicon",
            description="How positive are the words, by an English lexicon?",
            minimum=-1.0,
        )
        super().__init__(config, **options)
        self.speaker: Speaker = chosen(self.name, "speaker", speaker, SPEAKERS)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Whose messages count."""
        return {"speaker": self.speaker}

    def measure(self, part: Part) -> Measured:
        """Average the messages; the most negative one is the evidence."""
        messages = utterances(part, self.speaker)
        series = [sentiment(message.text) for message in messages]
        if not any(series):
            return Measured(None, f"no {self.speaker} message has a word of the English lexicon")
        lowest = messages[series.index(min(series))]
        reason = f"{len(series)} messages of the {self.speaker}, from {min(series):.2f} to {max(series):.2f}"
        return Measured(fmean(series), reason, [lowest.quote()], {"series": _series(messages, series)})


class SentimentTrendMetric(ExactMetric):
    """Says how the user's sentiment changes: its mean in the later half of the messages minus that in the earlier.

    The sentiment of a message is that of `SentimentLexiconMetric`, with the same extra `sentiment`; the middle one of
    an odd number of messages is in neither half. Needs two messages, and a word of the English lexicon in one of them.
    From -2 to 2, above 0 where the user becomes happier; higher is better, and, if set, `threshold` or more passes.
    `details` has the `series` and the `slope` per message of the line through it.

    Known failures: those of the lexicon, and thanks at the end, which many users say however it went.
    """

    def __init__(self, *, speaker: Speaker = "user", **options: Unpack[MeasuringOptions]) -> None:
        check_lexicon()
        config = MetricConfig(
            class_name=type(self).__name__,
            name="sentiment_trend",
            description="Does the sentiment rise or fall, by an English lexicon?",
            minimum=-2.0,
            maximum=2.0,
        )
        super().__init__(config, **options)
        self.speaker: Speaker = chosen(self.name, "speaker", speaker, SPEAKERS)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Whose messages count."""
        return {"speaker": self.speaker}

    def measure(self, part: Part) -> Measured:
        """Compare the halves; the message with the largest fall is the evidence."""
        messages = utterances(part, self.speaker)
        series = [sentiment(message.text) for message in messages]
        if len(series) < 2:
            return Measured(None, f"the {self.speaker} has fewer than two messages")
        if not any(series):
            return Measured(None, f"no {self.speaker} message has a word of the English lexicon")
        half = len(series) // 2
        earlier, later = fmean(series[:half]), fmean(series[-half:])
        falls = [after - before for before, after in pairwise(series)]
        evidence = [messages[falls.index(min(falls)) + 1].quote()] if min(falls) < 0 else []
        details: dict[str, Any] = {"series": _series(messages, series), "slope": round(_slope(series), 4)}
        return Measured(later - earlier, f"from {earlier:.2f} to {later:.2f}", evidence, details)


def sentiment(text: str) -> float:
    """Return the mean sentiment of a text's sentences, from -1 to 1; 0 where no word is in the lexicon.

    Raises:
        MissingExtra: the lexicon is not installed.
    """
    scores: list[float] = []
    remaining = MEASURED
    for part in (part for sentence in _SENTENCE_END.split(text[:MEASURED]) for part in _parts(sentence)):
        if (remaining := remaining - len(part)) < 0:
            break
        scores.append(float(_analyzer().polarity_scores(part)["compound"]))
    return fmean(scores) if scores else 0.0


def has_lexicon() -> bool:
    """Say whether the lexicon is installed."""
    return importlib.util.find_spec("vaderSentiment") is not None


def check_lexicon() -> None:
    """Check that the lexicon is installed.

    Raises:
        MissingExtra: it is not.
    """
    if not has_lexicon():
        raise MissingExtra("its English lexicon", "sentiment")


def _parts(sentence: str) -> Iterator[str]:
    """Yield a sentence, and what is too long for one in parts, for the time that VADER takes grows with its square.

    An emoji counts as the words that VADER reads it as.
    """
    if sentence.isascii() and len(sentence) <= LONGEST:
        words: Sequence[str] = (sentence,)
    else:
        names: Mapping[str, str] = _analyzer().emojis
        words = [f" {names[sign]}" if sign in names else sign for sign in sentence]
    part: list[str] = []
    size = 0
    for word in words:
        if part and size + len(word) > LONGEST:
            yield "".join(part)
            part, size = [], 0
        part.append(word)
        size += len(word)
    if (rest := "".join(part)).strip():
        yield rest


@cache
def _analyzer() -> Any:
    try:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    except ImportError as error:
        raise MissingExtra("the sentiment of a text", "sentiment") from error
    return SentimentIntensityAnalyzer()


def _series(messages: list[Utterance], series: list[float]) -> list[dict[str, Any]]:
    return [
        {"turn": message.turn, "sentiment": round(value, 4)} for message, value in zip(messages, series, strict=True)
    ]


def _slope(series: list[float]) -> float:
    """Return the slope of the least squares line through values at 0, 1, 2 and on."""
    middle = (len(series) - 1) / 2
    spread = sum((i - middle) ** 2 for i in range(len(series)))
    return sum((i - middle) * value for i, value in enumerate(series)) / spread
