"""Claims: sentences with the dates, sums and numbers in them, in a form in which two can be compared by rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from vivavoce.penelope.tools.sentences import denies, sentences, stems
from vivavoce.penelope.tools.spans import Span, find_spans

LIMITS = "Compared by words and figures alone: a paraphrase, and a number in words, is not understood."
"""What is to be said with every comparison."""

LOOKED_AT = 400
"""Claims of a text that are compared."""

SAME_SUBJECT = 0.5
"""The share of the words of the poorer claim that two about the same thing have in common."""

_COMPARED = frozenset(("date", "time", "money", "quantity", "code", "number"))


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence: the stems of its words, its figures by what they count, and whether it denies something."""

    text: str
    stems: frozenset[str]
    figures: Mapping[str, frozenset[str]]
    denies: bool

    def covers(self, other: Claim) -> float:
        """Return the share of another claim's words that this one has, 0 where it has none."""
        return len(self.stems & other.stems) / len(other.stems) if other.stems else 0.0

    def is_about(self, other: Claim) -> bool:
        """Say whether two claims seem to be about the same thing."""
        fewer = min(len(self.stems), len(other.stems))
        return fewer > 0 and len(self.stems & other.stems) / fewer >= SAME_SUBJECT

    def has_figures_of(self, other: Claim) -> bool:
        """Say whether every figure of another claim is in this one."""
        return all(values <= self.figures.get(counted, frozenset()) for counted, values in other.figures.items())

    def differs_from(self, other: Claim) -> list[tuple[str, str]]:
        """Return the figures that count the same and have no value in common, this claim's first."""
        return [
            (", ".join(sorted(values)), ", ".join(sorted(other.figures[counted])))
            for counted, values in self.figures.items()
            if counted in other.figures and not values & other.figures[counted]
        ]


def claim(sentence: str) -> Claim:
    """Read a sentence."""
    spans = [span for span in find_spans(sentence) if span.kind in _COMPARED]
    figures: dict[str, frozenset[str]] = {}
    for span in spans:
        figures[_counted(span)] = figures.get(_counted(span), frozenset()) | {span.value}
    return Claim(sentence, frozenset(stems(_words_of(sentence, spans))), figures, denies(sentence))


def claims(text: str, only_figures: bool = False) -> list[Claim]:
    """Return the sentences of a text as claims, at most `LOOKED_AT`; those with figures alone, where asked for."""
    return list(islice(_claims(text, only_figures), LOOKED_AT))


def _claims(text: str, only_figures: bool) -> Iterator[Claim]:
    for sentence in sentences(text):
        read = claim(sentence)
        if read.figures or not only_figures:
            yield read


def _counted(span: Span) -> str:
    return f"{span.kind} {_measure(span.unit)}".rstrip()


def _measure(unit: str) -> str:
    """Return what a unit measures, so that 30 days and 14 business days differ, and 30 days and 3 items do not."""
    return unit.rpartition(" ")[2]


def _words_of(sentence: str, spans: Sequence[Span]) -> str:
    """Return a sentence without its figures; what a quantity counts is a word of it."""
    parts: list[str] = []
    end = 0
    for span in spans:
        parts += [sentence[end : span.start], span.unit]
        end = span.end
    return " ".join([*parts, sentence[end:]])
