"""Evidence in place: the words of a transcript that a score note cites, linked with it by a letter; legible text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Literal

from vivavoce.comparing.quotes import QuotedText, read_quote
from vivavoce.comparing.text import Span
from vivavoce.records.score import Evidence

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, hyperlinks and other strings, with what they hold
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
"""Source: ECMA-48, "Control functions": CSI, and the control strings OSC, DCS, SOS, PM, APC."""

_ANY_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates, with which words can be made to look like others.

Source: Unicode Standard Annex #9, "Explicit Directional Formatting Characters".
"""


def legible(text: str) -> str:
    """Return a text without control characters and escape sequences; half a surrogate pair is a question mark."""
    if _ANY_CONTROL.search(text) is not None:
        text = _CONTROL.sub("", text)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def turning(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a text, and the names of the characters in it that turn the reading direction as True."""
    position = 0
    for match in _TURNING.finditer(text):
        if match.start() > position:
            yield text[position : match.start()], False
        yield f"U+{ord(match[0]):04X}", True
        position = match.end()
    if position < len(text) or not text:
        yield text[position:], False


Ink = Literal["bad", "src", "met"]
"""The colour class of evidence: words of the assistant that prove a fault, words of others for one, or no fault."""


@dataclass(frozen=True, slots=True)
class Cite:
    """How cited words are written: their colour class, their element id, their letter, and the note they lead to."""

    ink: Ink
    anchor: str
    letter: str
    note: str


@dataclass(slots=True)
class Place:
    """The place of cited words or of a cited tool call; `letter` is empty until it is found on the page.

    `bad` means that one of the score notes that cite it finds a fault, `note` is the id of the first one that does, and
    `by_assistant` means that the assistant wrote the words.
    """

    anchor_prefix: str
    note: str
    bad: bool
    letter: str = ""
    by_assistant: bool = True

    @property
    def anchor(self) -> str:
        """The element id of the words."""
        return f"{self.anchor_prefix}ev-{self.letter}"

    @property
    def cite(self) -> Cite:
        """How the words are written."""
        return Cite(_ink(self.bad, self.by_assistant), self.anchor, self.letter, self.note)


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation or a tool call as one score note cites it; `bad` means that it proves a fault there."""

    text: str
    turn: int | None
    kind: str
    verified: bool
    bad: bool
    place: Place

    @property
    def ink(self) -> Ink:
        """The colour class of its letter next to the note: another note may see the same words otherwise."""
        return _ink(self.bad, self.place.by_assistant)

    @property
    def letter(self) -> str:
        """The letter of its place, empty until it is found on the page."""
        return self.place.letter

    @property
    def anchor(self) -> str:
        """The element id of its place."""
        return self.place.anchor


@dataclass(frozen=True, slots=True)
class Mark:
    """Where cited words are in a text; `last` means that the letter follows them."""

    start: int
    end: int
    cite: Cite
    last: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text; `cite` says what evidence it is, `last` that the letter follows it."""

    text: str
    cite: Cite | None = None
    last: bool = False


@dataclass(slots=True)
class Register:
    """All the evidence about a conversation; the same words in the same turn have one place.

    `prefix` begins the names of all places in the conversation, where it shares a page with others, and `part` comes
    after it in the names of evidence: each part of a long conversation letters its own.
    """

    prefix: str = ""
    part: str = ""
    _cited: dict[tuple[int | None, str], Quote] = field(default_factory=dict[tuple[int | None, str], Quote])
    _lettered: int = 0

    def enter(self, evidence: Iterable[Evidence], note: str, *, bad: bool) -> list[Quote]:
        """Register the evidence of a score note."""
        return [self._enter_quote(piece, note, bad) for piece in evidence]

    def of_turn(self, turn: int | None) -> list[Quote]:
        """Return the evidence of a turn that was found on the page, each place once."""
        return [quote for (where, _), quote in self._cited.items() if where == turn and quote.letter]

    def awaits(self, turn: int | None) -> bool:
        """Return whether evidence of a turn was not found on the page so far."""
        return any(where == turn and quote.verified and not quote.letter for (where, _), quote in self._cited.items())

    def call(self, reference: str, turn: int | None) -> Cite | None:
        """Return how a tool call that is evidence is written, by its reference."""
        quote = self._cited.get((turn, reference))
        if quote is None or quote.kind != "call" or not quote.verified:
            return None
        return self._cite(quote.place, by_assistant=True)

    def marks(self, text: str, turn: int | None, *, by_assistant: bool) -> list[Mark]:
        """Return where the evidence of a turn is in a text; `by_assistant` if the assistant wrote it."""
        quotes = [quote for (where, _), quote in self._cited.items() if where == turn and quote.kind != "call"]
        missing = [quote for quote in quotes if quote.verified and not quote.letter]
        source = QuotedText(text if missing else "")
        spans = [(start, end, quote.place) for quote in missing for start, end in _spans(quote.text, source)]
        outer_spans: list[tuple[int, int, Place]] = []
        for span in sorted(spans, key=lambda span: (span[0], -span[1])):
            if not outer_spans or span[0] >= outer_spans[-1][1]:
                outer_spans.append(span)
        ends = {id(place): end for _, end, place in outer_spans}
        return [
            Mark(start, end, self._cite(place, by_assistant), ends[id(place)] == end)
            for start, end, place in outer_spans
        ]

    def _cite(self, place: Place, by_assistant: bool) -> Cite:
        if not place.letter:
            place.letter, place.by_assistant = _letter(self._lettered), by_assistant
            self._lettered += 1
        return place.cite

    def _enter_quote(self, evidence: Evidence, note: str, bad: bool) -> Quote:
        known = self._cited.get((evidence.turn, evidence.text))
        place = Place(f"{self.prefix}{self.part}", note, bad) if known is None else known.place
        if bad and not place.bad:
            place.bad, place.note = True, note
        quote = Quote(evidence.text, evidence.turn, evidence.kind, evidence.verified, bad, place)
        self._cited.setdefault((evidence.turn, evidence.text), quote)
        return quote


def pieces(text: str, marks: Iterable[Mark]) -> Iterator[Piece]:
    """Yield a text split at its marks."""
    position = 0
    for mark in marks:
        if mark.start > position:
            yield Piece(text[position : mark.start])
        yield Piece(text[mark.start : mark.end], mark.cite, mark.last)
        position = mark.end
    if position < len(text):
        yield Piece(text[position:])


def _ink(bad: bool, by_assistant: bool) -> Ink:
    if not bad:
        return "met"
    return "bad" if by_assistant else "src"


def _letter(number: int) -> str:
    """Return a, b, …, z, aa, ab and so on."""
    rest, last = divmod(number, 26)
    return (_letter(rest - 1) if rest else "") + ascii_lowercase[last]


def _spans(text: str, source: QuotedText) -> Sequence[Span]:
    """Return where the parts of a quote are."""
    return next((spans for quote in read_quote(legible(text)) if (spans := source.find(quote))), ())
