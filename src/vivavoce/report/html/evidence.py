"""Evidence in place: the words of a transcript that a score note cites, linked with it by a letter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from string import ascii_lowercase

from vivavoce.records.score import Evidence

_LEFT_OUT = re.compile(r"\[(?:\.\.\.|…)\]|\((?:\.\.\.|…)\)|\.\.\.|…")
_ALIKE = {mark: f"[{marks}]" for marks in ('“”„«»"', "‘’‚‹›'", "‐‑‒–—―−\\-") for mark in marks if mark != "\\"}
_EDGE = " \"'“”‘’"


@dataclass(slots=True)
class Quote:
    """A quotation or a tool call that a score note cites; `letter` is empty until it is found on the page.

    `bad` means that it proves a fault, `note` is the id of the score note that cites it, `by_assistant` means that the
    assistant wrote the words, and `prefix` begins all element ids.
    """

    text: str
    turn: int | None
    kind: str
    verified: bool
    bad: bool
    note: str
    letter: str = ""
    by_assistant: bool = True
    prefix: str = ""

    @property
    def ink(self) -> str:
        """The colour class of its letter: a fault is red, a source is blue."""
        return "bad" if self.bad and self.by_assistant else "src"

    @property
    def anchor(self) -> str:
        """The element id of its place."""
        return f"{self.prefix}ev-{self.letter}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text; `quote` is its evidence, `last` means that the letter follows it."""

    text: str
    quote: Quote | None = None
    last: bool = False


@dataclass(slots=True)
class Register:
    """All the evidence about a conversation; the same words in the same turn are one piece of evidence.

    `prefix` begins the names of all places in the conversation, where it shares a page with others.
    """

    prefix: str = ""
    _quotes: dict[tuple[int | None, str], Quote] = field(default_factory=dict[tuple[int | None, str], Quote])
    _lettered: int = 0

    def enter(self, evidence: Iterable[Evidence], note: str, *, bad: bool) -> list[Quote]:
        """Register the evidence of a score note."""
        return [self._entered(one, note, bad) for one in evidence]

    def of_turn(self, turn: int | None) -> list[Quote]:
        """Return the evidence of a turn that was found on the page."""
        return [quote for (where, _), quote in self._quotes.items() if where == turn and quote.letter]

    def call(self, reference: str, turn: int | None) -> Quote | None:
        """Return the evidence for a tool call, by its reference."""
        quote = self._quotes.get((turn, reference))
        if quote is None or quote.kind != "call" or not quote.verified:
            return None
        return self._found(quote, by_assistant=True)

    def pieces(self, text: str, turn: int | None, *, by_assistant: bool) -> list[Piece]:
        """Return a text split at the evidence of its turn; `by_assistant` if the assistant wrote it."""
        spans: list[tuple[int, int, Quote]] = []
        for (where, _), quote in self._quotes.items():
            if where == turn and quote.kind != "call" and quote.verified and not quote.letter:
                spans += [(start, end, quote) for start, end in _spans(quote.text, text)]
        return list(self._cut(text, sorted(spans, key=lambda span: (span[0], -span[1])), by_assistant))

    def _cut(self, text: str, spans: list[tuple[int, int, Quote]], by_assistant: bool) -> Iterable[Piece]:
        position = 0
        kept = [span for i, span in enumerate(spans) if all(span[0] >= earlier[1] for earlier in spans[:i])]
        ends = {id(quote): end for _, end, quote in kept}
        for start, end, quote in kept:
            if start > position:
                yield Piece(text[position:start])
            self._found(quote, by_assistant)
            yield Piece(text[start:end], quote, ends[id(quote)] == end)
            position = end
        if position < len(text):
            yield Piece(text[position:])

    def _found(self, quote: Quote, by_assistant: bool) -> Quote:
        if not quote.letter:
            quote.letter, quote.by_assistant = _letter(self._lettered), by_assistant
            self._lettered += 1
        return quote

    def _entered(self, one: Evidence, note: str, bad: bool) -> Quote:
        quote = self._quotes.get((one.turn, one.text))
        if quote is None:
            quote = Quote(one.text, one.turn, one.kind, one.verified, bad, note, prefix=self.prefix)
            self._quotes[one.turn, one.text] = quote
        quote.bad = quote.bad or bad
        return quote


def _letter(number: int) -> str:
    """Return a, b, …, z, aa, ab and so on."""
    rest, last = divmod(number, 26)
    return (_letter(rest - 1) if rest else "") + ascii_lowercase[last]


def _spans(quote: str, text: str) -> list[tuple[int, int]]:
    """Return where a quote is: case, white space and punctuation style may differ, and words may be left out."""
    for wording in (quote, _unescaped(quote)) if "\\" in quote else (quote,):
        parts = [part for piece in _LEFT_OUT.split(wording) if (part := piece.strip().strip(_EDGE).strip())]
        found: list[tuple[int, int]] = []
        start = 0
        for part in parts:
            match = re.compile(_pattern(part), re.IGNORECASE).search(text, start)
            if match is None:
                break
            found.append(match.span())
            start = match.end()
        if parts and len(found) == len(parts):
            return found
    return []


def _pattern(part: str) -> str:
    return r"\s+".join("".join(_ALIKE.get(mark) or re.escape(mark) for mark in word) for word in part.split())


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text
