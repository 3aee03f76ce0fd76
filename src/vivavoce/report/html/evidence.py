"""Evidence in place: which words of a transcript a mark rests on, with a letter that leads from one to the other."""

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
    """What a mark quotes, or a tool call that it names; `letter` is empty until it was found on the page.

    `bad` says that it is the proof of a fault, `mark` names the mark that rests on it, `said` that the words are the
    assistant's own, and `prefix` begins the names of places.
    """

    text: str
    turn: int | None
    kind: str
    verified: bool
    bad: bool
    mark: str
    letter: str = ""
    said: bool = True
    prefix: str = ""

    @property
    def ink(self) -> str:
        """The ink of its letter: a fault is red, what it is measured by is blue."""
        return "bad" if self.bad and self.said else "src"

    @property
    def anchor(self) -> str:
        """The name of the place where it stands."""
        return f"{self.prefix}ev-{self.letter}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; `quote` is the evidence that it is, `last` says that the letter follows it."""

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

    def enter(self, evidence: Iterable[Evidence], mark: str, *, bad: bool) -> list[Quote]:
        """Enter what a mark rests on."""
        return [self._entered(one, mark, bad) for one in evidence]

    def of_turn(self, turn: int | None) -> list[Quote]:
        """Return the evidence of a turn that was found on the page."""
        return [quote for (where, _), quote in self._quotes.items() if where == turn and quote.letter]

    def call(self, reference: str, turn: int | None) -> Quote | None:
        """Return the evidence that a tool call is, by its reference."""
        quote = self._quotes.get((turn, reference))
        if quote is None or quote.kind != "call" or not quote.verified:
            return None
        return self._found(quote, said=True)

    def pieces(self, text: str, turn: int | None, *, said: bool) -> list[Piece]:
        """Return a text cut where the evidence of its turn stands; `said` when these are the assistant's words."""
        spans: list[tuple[int, int, Quote]] = []
        for (where, _), quote in self._quotes.items():
            if where == turn and quote.kind != "call" and quote.verified and not quote.letter:
                spans += [(start, end, quote) for start, end in _spans(quote.text, text)]
        return list(self._cut(text, sorted(spans, key=lambda span: (span[0], -span[1])), said))

    def _cut(self, text: str, spans: list[tuple[int, int, Quote]], said: bool) -> Iterable[Piece]:
        position = 0
        kept = [span for i, span in enumerate(spans) if all(span[0] >= earlier[1] for earlier in spans[:i])]
        ends = {id(quote): end for _, end, quote in kept}
        for start, end, quote in kept:
            if start > position:
                yield Piece(text[position:start])
            self._found(quote, said)
            yield Piece(text[start:end], quote, ends[id(quote)] == end)
            position = end
        if position < len(text):
            yield Piece(text[position:])

    def _found(self, quote: Quote, said: bool) -> Quote:
        if not quote.letter:
            quote.letter, quote.said = _letter(self._lettered), said
            self._lettered += 1
        return quote

    def _entered(self, one: Evidence, mark: str, bad: bool) -> Quote:
        quote = self._quotes.get((one.turn, one.text))
        if quote is None:
            quote = Quote(one.text, one.turn, one.kind, one.verified, bad, mark, prefix=self.prefix)
            self._quotes[one.turn, one.text] = quote
        quote.bad = quote.bad or bad
        return quote


def _letter(number: int) -> str:
    """Return a, b, …, z, aa, ab and so on."""
    rest, last = divmod(number, 26)
    return (_letter(rest - 1) if rest else "") + ascii_lowercase[last]


def _spans(quote: str, text: str) -> list[tuple[int, int]]:
    """Return where a quote stands: capitals, white space and kinds of marks may differ, words may be left out."""
    for spelled in (quote, _unescaped(quote)) if "\\" in quote else (quote,):
        parts = [part for piece in _LEFT_OUT.split(spelled) if (part := piece.strip().strip(_EDGE).strip())]
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
