"""Quotes: where the words that somebody quotes stand in a text.

A quote may differ from the text in encoding, case, the amount of white space, and markup, may leave words out where it
says `…`, may be escaped as in JSON, and may name the speaker before the words. It never begins or ends inside a word or
a number: "paid" is not quoted from "unpaid", "I can" not from "I can't", and 12 not from 12,500.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from vivavoce.comparing.numbers import cuts_number
from vivavoce.comparing.text import QUOTATION_MARKS, FoldedText, Span, is_boundary

_EDGE = f"{QUOTATION_MARKS} \t\r\n\u00a0"
_ROLES = "user|assistant|tool|system|developer"
_LEFT_OUT = re.compile(r"\[(?:\.\.\.|…)\]|\((?:\.\.\.|…)\)|\.\.\.|…")
_OUTER_PUNCTUATION = re.compile(rf"(?<=[{re.escape(QUOTATION_MARKS)}])[.,;:!?]+\s*\Z")
_TURN = r"(?:[\[(](?:turn|session) [0-9]{1,6}(?:, session [0-9]{1,6})?[\])][:,]?|turn [0-9]{1,6}[:,])\s*"
_NAME = r"[\w./-]{1,64}"
_SPEAKER = (
    rf"(?:[*_`]{{0,3}}(?:the )?(?:(?P<role>{_ROLES})|(?P<result>result) c[0-9]+)(?: (?:failed|refused))?[*_`]{{0,3}}\s?"
    rf"(?:{_TURN})?:[*_`]{{0,3}}|\[(?P<bracketed>{_ROLES})\]:?"
    rf"|(?:(?P<named>{_ROLES}) {_NAME}|(?P<tool>result) of {_NAME}):(?=\s*[\"“„«]))\s*"
)
_PREFIX = re.compile(
    rf"\s*(?:[-*•>]\s+)?(?=[\[(*_`]*[a-z])(?:{_TURN})*+(?:{_SPEAKER})?+(?<=[:\])*_`,\s])", re.IGNORECASE
)
"""What a judge may put before a quote: the turn and the speaker, as a transcript has them."""
_JOINTS = "-@\u2010\u2011"
"""What joins letters to one word or address."""
_NEGATION = re.compile("['\u2019\u02bc\uff07]t(?!\\w)", re.IGNORECASE)

_RUN = re.compile(r"(?<!\\)(?:\*+|_+|`+)")
_MAX_MARKS = 3
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_LINE_MARKUP = re.compile(r"^[ \t]*(?:(?:[*•]|[-+](?![ \t]+[^\w\s]?\d)|#{1,6})[ \t]+)+", re.MULTILINE)
"""What begins a heading or an item of a list; `- 40` may be a number with its sign."""


@dataclass(frozen=True, slots=True)
class Quote:
    """One way to read a quote: its parts, between which words are left out, and who said it if the quote names them."""

    parts: tuple[str, ...]
    speaker: str = ""


@lru_cache(maxsize=4096)
def read_quote(text: str) -> Sequence[Quote]:
    """Return the ways to read a quote, the most literal first; those without a letter or a digit are left out."""
    wordings = [(text, "")]
    if text != (bare := _without_prefix(text))[0] or text != (bare := _without_prefix(_strip_edge(text)))[0]:
        wordings.append(bare)
    quotes: dict[Quote, None] = {}
    for wording, speaker in wordings:
        for form in dict.fromkeys((wording, _strip_edge(_OUTER_PUNCTUATION.sub("", wording)))):
            for unescaped in dict.fromkeys((form, _unescape(form))):
                if parts := _parts(unescaped):
                    quotes[Quote(parts, speaker)] = None
    return tuple(quotes)


def without_markup(text: str) -> str:
    """Return a text as it looks where Markdown is shown: without emphasis, code marks, and marks that begin a line.

    Only marks that come in pairs around words are markup: `2*3*4`, `snake_case`, and `*args` stay as they are.
    """
    return QuotedText(text).rendered.text


class QuotedText:
    """A text that quotes are looked up in; it is folded once, and read without its markup only when needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def find(self, quote: Quote) -> Sequence[Span]:
        """Return where each part of a quote stands, each after the one before it; empty if one is missing."""
        if spans := self._find_in(self.folded, quote.parts):
            return spans
        bare = tuple(part for part in map(_bare_part, quote.parts) if part)
        if not any(map(_has_word, bare)) or (not self._removed and bare == quote.parts):
            return ()
        spans = self._find_in(self.rendered, bare)
        return [Span(self._places[span.start], self._places[span.end - 1] + 1) for span in spans]

    @cached_property
    def folded(self) -> FoldedText:
        """The text, folded."""
        return FoldedText(self.text)

    @cached_property
    def rendered(self) -> FoldedText:
        """The text without its markup."""
        return FoldedText("".join(self.text[place] for place in self._places)) if self._removed else self.folded

    @cached_property
    def _removed(self) -> Sequence[Span]:
        return _markup(self.text)

    @cached_property
    def _places(self) -> Sequence[int]:
        """Where in the text each character of the rendered one stands."""
        removed = {place for span in self._removed for place in range(*span)}
        return [place for place in range(len(self.text)) if place not in removed]

    @cached_property
    def _rendered_places(self) -> Sequence[int]:
        """How many characters of the rendered text come before each place in the text."""
        removed = {place for span in self._removed for place in range(*span)}
        return [0, *accumulate(place not in removed for place in range(len(self.text)))]

    def _find_in(self, folded: FoldedText, parts: Sequence[str]) -> Sequence[Span]:
        spans: list[Span] = []
        end = 0
        for part in parts:
            places = (span for span in folded.find_all(part, whole=True) if span.start >= end)
            span = next((span for span in places if not self._cuts(folded.text, span)), None)
            if span is None:
                return ()
            if spans and _NEGATIONS.search(folded.text, end, span.start):
                return ()
            spans.append(span)
            end = span.end
        return spans

    def _cuts(self, text: str, span: Span) -> bool:
        """Return whether a span begins or ends inside a word or a number, as the text is or as it is shown."""
        if any(cuts_word(text, place) for place in span):
            return True
        if not self._removed or text is not self.text:
            return False
        return any(cuts_word(self.rendered.text, self._rendered_places[place]) for place in span)


_NEGATIONS = re.compile(
    r"n't\b|n’t\b|\b(?:not|no|never|none|cannot|without|nicht|kein\w*|nie|niemals|ohne|ne|pas|jamais|sans|nunca|sin|non(?![-‐‑])|mai|não|nao"
    r"|не|нет|никогда)\b|[没沒不未无無]|ない|ません"
)
"""Words that turn a statement around; `…` may not leave them out."""


def cuts_word(text: str, place: int) -> bool:
    """Return whether a place is inside a compound (`non-refundable`), a negation (`can't`), a number, or a code."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before in _JOINTS and place > 1:
        if _is_letter(text[place - 2]) and _is_letter(after):
            return True
    elif _is_letter(before):
        if after in _JOINTS and _is_letter(text[place + 1 : place + 2]):
            return True
        if _NEGATION.match(text, place):
            return True
    return cuts_number(text, place)


def _is_letter(character: str) -> bool:
    return character.isalpha()


def _without_prefix(text: str) -> tuple[str, str]:
    """Return a quote without the turn and the speaker before it, and the role of that speaker."""
    match = _PREFIX.match(text)
    if match is None:
        return text, ""
    role = match["role"] or match["bracketed"] or match["named"] or ("tool" if match["result"] or match["tool"] else "")
    return text[match.end() :], role.lower()


def _parts(text: str) -> tuple[str, ...]:
    pieces = _LEFT_OUT.split(text) if "..." in text or "…" in text else (text,)
    parts = tuple(part for piece in pieces if (part := _strip_edge(piece)))
    return parts if any(map(_has_word, parts)) else ()


def _strip_edge(part: str) -> str:
    return part.strip().strip(_EDGE)


def _bare_part(part: str) -> str:
    return _strip_edge(without_markup(part))


def _has_word(part: str) -> bool:
    return any(map(str.isalnum, part))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _markup(text: str) -> Sequence[Span]:
    """Return the marks of Markdown in a text: pairs around words, and what begins a line."""
    lines = [Span(*match.span()) for match in _LINE_MARKUP.finditer(text)] if text else []
    spans = list(lines)
    opened: list[tuple[str, int]] = []
    end = 0
    for run in _RUN.finditer(text):
        if any(line.start <= run.start() < line.end for line in lines):
            continue
        if opened and _PARAGRAPH.search(text, end, run.start()):
            opened.clear()
        end = run.end()
        marks = run[0]
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        if len(marks) > _MAX_MARKS:
            continue
        joins = bool(before and after and not is_boundary(before + after, 1))
        place = next((n for n in range(len(opened) - 1, -1, -1) if opened[n][0] == marks), None)
        if place is not None and before.strip() and not joins:
            spans += [Span(opened[place][1], opened[place][1] + len(marks)), Span(*run.span())]
            del opened[place:]
        elif after.strip() and not joins and not _is_word_end(before):
            opened.append((marks, run.start()))
    return sorted(spans)


def _is_word_end(character: str) -> bool:
    """Return whether a mark after a character goes on with a word, as in `5*`; after Han and its kin, it does not."""
    return bool(character) and character.isalnum() and not is_boundary(character + "a", 1)
