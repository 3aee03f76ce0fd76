"""Claims: sentences with the dates, sums and numbers in them, in a form in which two can be compared by rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from vivavoce.penelope.tools.sentences import denies, sentences, stems
from vivavoce.penelope.tools.spans import Span, find_spans

LIMITS = "Compared by words and figures alone: a paraphrase, and a number in words, is not understood."
"""The note on every comparison."""

MAX_CLAIMS = 400
"""Claims of a text that are compared, and those come from its first `LOOKED_THROUGH` sentences."""
LOOKED_THROUGH = 4000

SAME_SUBJECT = 0.5
"""The share of the words of the poorer claim that two about the same thing have in common."""

_IDENTIFYING = frozenset(("email", "phone", "date", "time", "money", "quantity", "code", "number"))
_WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())  # noqa: SIM905
_OF_NO_SUBJECT = frozenset("% second minute hour day night week month year".split())  # noqa: SIM905
_NOTHING: frozenset[str] = frozenset()


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
        """Say whether every figure of another claim is in this one; a plain number may count something here."""
        return all(
            any(_same(value, mine) for mine in self._values(unit))
            for unit, values in other.figures.items()
            for value in values
        )

    def differs_from(self, other: Claim) -> list[tuple[str, str]]:
        """Return the figures that count the same and cannot both be right, this claim's first."""
        return [
            (", ".join(sorted(values)), ", ".join(sorted(other.figures[unit])))
            for unit, values in self.figures.items()
            if unit in other.figures
            and not any(
                _same(mine, theirs) or _overlap(mine, theirs) for mine in values for theirs in other.figures[unit]
            )
        ]

    def _values(self, unit: str) -> frozenset[str]:
        values = self.figures.get(unit, _NOTHING)
        if unit == "number":
            counting = [amounts for key, amounts in self.figures.items() if key.startswith(("quantity", "money"))]
            values = values.union(value.partition(" ")[0] for amounts in counting for value in amounts)
        return values


def claim(sentence: str) -> Claim:
    """Read a sentence."""
    spans = [span for span in find_spans(sentence) if span.kind in _IDENTIFYING]
    figures: dict[str, frozenset[str]] = {}
    for span in spans:
        figures[_unit_of(span)] = figures.get(_unit_of(span), _NOTHING) | {span.value}
    return Claim(sentence, frozenset(stems(_words_of(sentence, spans))), figures, denies(sentence))


def claims(text: str, only_figures: bool = False) -> list[Claim]:
    """Return the sentences of a text as claims, at most `MAX_CLAIMS`; with `only_figures`, those that have figures."""
    return list(islice(_claims(text, only_figures), MAX_CLAIMS))


def _claims(text: str, only_figures: bool) -> Iterator[Claim]:
    for sentence in islice(sentences(text), LOOKED_THROUGH):
        parsed = claim(sentence)
        if parsed.figures or not only_figures:
            yield parsed


def _unit_of(span: Span) -> str:
    """Return what a figure counts: 30 days and 14 business days the same, 30 days and 3 items not."""
    if span.kind == "quantity":
        return f"quantity {span.unit.rpartition(' ')[2]}"
    return "weekday" if span.value in _WEEKDAYS else span.kind


def _words_of(sentence: str, spans: Sequence[Span]) -> str:
    """Return a sentence without its figures; what is counted is a word of it, unless it is time."""
    parts: list[str] = []
    end = 0
    for span in spans:
        unit = "" if span.unit.rpartition(" ")[2] in _OF_NO_SUBJECT else span.unit
        parts += [sentence[end : span.start], unit]
        end = span.end
    return " ".join([*parts, sentence[end:]])


def _same(value: str, other: str) -> bool:
    """Say whether two values are the same, as far as dates without a year or a day, or of two readings, are known."""
    return any(
        left == right or _part_of(left, right) or _part_of(right, left)
        for left in value.split(" or ")
        for right in other.split(" or ")
    )


def _part_of(short: str, date: str) -> bool:
    if short.startswith("--"):
        return date[4:7] == short[1:4] and short[4:] in ("", date[7:])
    return len(short) == 7 and date.startswith(f"{short}-")


def _overlap(value: str, other: str) -> bool:
    """Say whether two quantities have an amount in common, as 3 to 5 days and 4 days."""
    mine, theirs = _range(value), _range(other)
    return mine is not None and theirs is not None and mine[0] <= theirs[1] and theirs[0] <= mine[1]


def _range(value: str) -> tuple[float, float] | None:
    amounts, _, unit = value.partition(" ")
    try:
        low, *high = [float(amount) for amount in amounts.split("-")]
    except ValueError:
        return None
    return (low, high[0] if high else low) if unit else None
