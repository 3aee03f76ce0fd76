"""Quotes: find quoted words in a text.

A quote may differ from the text in encoding, case, the amount of white space, markup, and its last mark, may leave
words out where it says `…`, may be escaped as in JSON, and may name the turn and the speaker before the words. It never
begins or ends inside a word, a number, or an address as a reader sees them: "paid" is not quoted from "unpaid" or from
"un**paid**", "I can" not from "I can't", 12 not from 12,500, and "x.org" not from "x.org/p". The sign of a currency may
be left out. Struck words are not quoted. A quote never leaves out a negation that governs its words: see `negations`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile

from vivavoce.comparing.negations import is_denied_after, is_denied_before, leaves_out_negation
from vivavoce.comparing.numbers import cuts_number
from vivavoce.comparing.text import (
    MAX_ADDRESS_CHARS,
    QUOTATION_MARKS,
    FoldedText,
    Replacement,
    Span,
    hidden_markup,
    is_blank,
    is_boundary,
    link_marks,
    may_have_markup,
)

_EDGE = f"{QUOTATION_MARKS} \t\r\n\u00a0"
_ROLES = "user|assistant|tool|system|developer"
_LEFT_OUT = re.compile(r"\[(?:\.\.\.|…)\]|\((?:\.\.\.|…)\)|\.\.\.|…")
_OUTER_PUNCTUATION = re.compile(rf"(?<=[{re.escape(QUOTATION_MARKS)}])[.,;:!?]+\s*\Z")
_LAST_MARK = re.compile(r"(?<![.,;:!…])[.,;:!。！]\Z")
"""A mark at the end of a quote that may be the judge's own."""
_TURN_NUMBER = re.compile(r"turn ([0-9]{1,6})", re.IGNORECASE)
_SESSION_NUMBER = re.compile(r"session ([0-9]{1,6})", re.IGNORECASE)
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
_LANGUAGE_SIGN = re.compile(r"(?:#|\+{1,2})(?!\w)")
"""What may end a name: `C#`, `C++`."""
_ADDRESS_CHARACTER = re.compile(r"[\w.~:/?#@!$&+,;=%-]", re.ASCII)
_ADDRESS_REST = re.compile(rf"{_ADDRESS_CHARACTER.pattern}+", re.ASCII)
_AFTER_ADDRESS = ".,:;!?/_~"
"""Marks after an address that may belong to the sentence; a slash at its end changes nothing."""
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*://|mailto:)(?:www\.)?|www\.", re.IGNORECASE)
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://.|mailto:|www\.\w|(?:~|\.{1,2})?/\w|[\w.+%-]+@\w|(?:[a-z0-9-]+\.)+[a-z]{2,}(?:[/:?#]|\Z)",
    re.IGNORECASE | re.ASCII,
)
"""How an address begins: of a page, a mailbox, or a file."""
_CONTRACTION = re.compile("['\u2019\u02bc\uff07]t(?!\\w)", re.IGNORECASE)

_RUN = re.compile(r"(?<!\\)(?:\*+|_+|`+)")
_MAX_MARKS = 3
_STRIKE = re.compile(r"~~|<(?P<open>del|s|strike)(?:\s[^<>]{0,200})?>|</(?P<close>del|s|strike)\s{0,9}>", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_LINE_MARKUP = re.compile(r"^[ \t]*(?:(?:[*•]|[-+](?![ \t]+[^\w\s]?\d)|#{1,6})[ \t]+)+", re.MULTILINE)
"""What begins a heading or an item of a list; `- 40` may be a number with its sign."""


@dataclass(frozen=True, slots=True)
class Quote:
    """One way to read a quote: its parts, between which words are left out, and who said it, and when.

    `speaker`, `turn`, and `session` are those that the quote names; turns and sessions count from 1.
    """

    parts: tuple[str, ...]
    speaker: str = ""
    turn: int | None = None
    session: int | None = None


@lru_cache(maxsize=4096)
def read_quote(text: str) -> Sequence[Quote]:
    """Return the ways to read a quote, the most literal first; those without a letter or a digit are left out."""
    wordings = [(text, Quote(()))]
    if text != (bare := _without_prefix(text))[0] or text != (bare := _without_prefix(_strip_edge(text)))[0]:
        wordings.append(bare)
    quotes: dict[Quote, None] = {}
    for wording, source in wordings:
        for form in dict.fromkeys((wording, _strip_edge(_OUTER_PUNCTUATION.sub("", wording)))):
            for unescaped in dict.fromkeys((form, _unescape(form))):
                if parts := _parts(unescaped):
                    quotes[replace(source, parts=parts)] = None
    return tuple(quotes)


def without_markup(text: str) -> str:
    """Return a text as it looks where Markdown is shown: without emphasis, addresses of links, and marks of lines.

    Only marks that come in pairs around words are markup: `2*3*4`, `snake_case`, and `*args` stay as they are.
    """
    return _Rendering(text, _markup).visible_text


def shown_text(text: str) -> str:
    """Return what a text states where Markdown and HTML are shown: without markup, and without struck words."""
    return _Rendering(text, _visible_marks).visible_text


class QuotedText:
    """A text that quotes are looked up in; it is folded once, and read without its markup only when needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def find(self, quote: Quote) -> Sequence[Span]:
        """Return where each part of a quote stands, each after the one before it; empty if one is missing."""
        if spans := self._find_anywhere(quote.parts):
            return spans
        last = _LAST_MARK.sub("", quote.parts[-1])
        if last == quote.parts[-1] or not _has_word(last):
            return ()
        spans = self._find_anywhere((*quote.parts[:-1], last))
        return () if spans and _QUESTION.match(self.text, spans[-1].end) else spans

    def _find_anywhere(self, parts: tuple[str, ...]) -> Sequence[Span]:
        if spans := self._find_in(self.folded, parts):
            return spans
        if self._is_plain:
            others = _plain_readings(parts)
            return next((spans for plain in others if (spans := self._find_in(self.folded, plain))), ())
        for rendering in (self._rendering, self._page):
            plain = _plain_parts(parts, rendering.reader)
            if plain and (spans := self._find_in(rendering.folded, plain)):
                return list(map(rendering.original, spans))
        return ()

    @cached_property
    def folded(self) -> FoldedText:
        """The text, folded."""
        return FoldedText(self.text)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether the text is shown as it is."""
        return not may_have_markup(self.text) and self.text == self.text.translate(_ONE_KIND_OF_QUOTES)

    @cached_property
    def _rendering(self) -> _Rendering:
        return _Rendering(self.text, _visible_marks)

    @cached_property
    def _page(self) -> _Rendering:
        return _Rendering(self.text.translate(_ONE_KIND_OF_QUOTES), _page_marks)

    def _find_in(self, folded: FoldedText, parts: Sequence[str]) -> Sequence[Span]:
        if len(parts) > MAX_PARTS:
            return ()
        spans: list[Span] = []
        end = 0
        for part in parts:
            is_first, is_last = not spans, len(spans) == len(parts) - 1
            tries = 0
            for span in folded.find_all(part, whole=True):
                if span.start < end:
                    continue
                tries += 1
                if tries > MAX_PLACES:
                    return ()
                if self._has(folded.text, span, is_first, is_last):
                    break
            else:
                return ()
            if spans and leaves_out_negation(folded.text, end, span):
                return ()
            spans.append(span)
            end = span.end
        return spans

    def _has(self, text: str, span: Span, is_first: bool, is_last: bool) -> bool:
        """Return whether a part of a quote may stand at a place, as the text is and as it is shown."""
        if _cuts(text, span, is_first, is_last):
            return False
        if text is not self.text or self._is_plain or not self._rendering.marks:
            return True
        unsaid = self._unsaid[bisect_right(self._unsaid, span.start, key=_end_of) :]
        overlaps = list(takewhile(lambda hidden: hidden.start < span.end, unsaid))
        if not all(_is_inside(hidden, span) for hidden in overlaps):
            return False
        rendered = self._rendering.rendered_span(span)
        if rendered.start == rendered.end:
            return not overlaps
        shown_text = self._rendering.folded.text
        return all(is_boundary(shown_text, place) for place in rendered) and not _cuts(
            shown_text, rendered, is_first, is_last
        )

    @cached_property
    def _unsaid(self) -> Sequence[Span]:
        """What a text takes back or hides: struck words, comments, and tags."""
        tags = (mark for mark in self._rendering.marks if self.text[mark.start] == "<")
        struck = (Replacement(*span, "") for span in _struck(self.text))
        return [Span(mark.start, mark.end) for mark in _without_overlaps((*struck, *tags))]


def _end_of(span: Span) -> int:
    return span.end


_Reader = Callable[[str], Sequence[Replacement]]


class _Rendering:
    """A text as it is shown, where a `reader` says which parts are shown in another way."""

    def __init__(self, text: str, reader: _Reader) -> None:
        self.reader = reader
        self.marks = reader(text)
        self._text = text

    @property
    def visible_text(self) -> str:
        """The text as it is shown."""
        if not self.marks:
            return self._text
        return "".join(replacement or self._text[span.start : span.end] for span, replacement in self._cells)

    @cached_property
    def folded(self) -> FoldedText:
        """The text as it is shown, folded."""
        return FoldedText(self.visible_text)

    def original(self, span: Span) -> Span:
        """Return the place in the text of a part of what is shown."""
        return Span(self._places[span.start].start, self._places[span.end - 1].end)

    def rendered_span(self, span: Span) -> Span:
        """Return the place in what is shown of a part of the text."""
        return Span(bisect_left(self._starts, span.start), bisect_left(self._starts, span.end))

    @cached_property
    def _starts(self) -> Sequence[int]:
        return [place.start for place in self._places]

    @cached_property
    def _cells(self) -> Sequence[tuple[Span, str]]:
        """The parts that are shown: where they are in the text, and what is shown if that differs."""
        cells: list[tuple[Span, str]] = []
        end = 0
        for mark in (*self.marks, Replacement(len(self._text), len(self._text), "")):
            if end < mark.start:
                cells.append((Span(end, mark.start), ""))
            if mark.replacement:
                cells.append((Span(mark.start, mark.end), mark.replacement))
            end = mark.end
        return cells

    @cached_property
    def _places(self) -> Sequence[Span]:
        """Where in the text each character that is shown stands."""
        places: list[Span] = []
        for span, replacement in self._cells:
            places += [span] * len(replacement) if replacement else (Span(place, place + 1) for place in range(*span))
        return places


@lru_cache(maxsize=4096)
def _plain_parts(parts: tuple[str, ...], reader: _Reader) -> tuple[str, ...]:
    """Return the parts of a quote as they would be shown, and nothing where that has no word."""
    rendered = (_strip_edge(_Rendering(part.translate(_ONE_KIND_OF_QUOTES), reader).visible_text) for part in parts)
    plain = tuple(part for part in rendered if part)
    return plain if any(map(_has_word, plain)) else ()


@lru_cache(maxsize=4096)
def _plain_readings(parts: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
    """Return the parts of a quote as they would be shown, where that differs from how they are written."""
    readings = dict.fromkeys(_plain_parts(parts, reader) for reader in (_visible_marks, _page_marks))
    return tuple(plain for plain in readings if plain and plain != parts)


def _is_inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _cuts(text: str, span: Span, is_first: bool, is_last: bool) -> bool:
    """Return whether a span begins or ends inside a word or a number, or leaves out a negation of its words."""
    first = 0 if text[span.start].islower() else text.rfind("\n", 0, span.start) + 1  # a sentence begins with its line
    if is_first and is_denied_before(text, span, first):
        return True
    if is_last and is_denied_after(text, span):
        return True
    cuts = [place for place in span if cuts_word(text, place)]
    return any(not _leaves_out_currency(text, place, span) for place in cuts) if cuts else False


def _leaves_out_currency(text: str, place: int, span: Span) -> bool:
    """Return whether only the sign of a currency is between a span and a place outside: `24.90` of `$24.90`."""
    outside = _CURRENCY_BEFORE.search(text, max(0, place - 3), place) if place == span.start else None
    if place == span.end:
        outside = _CURRENCY_AFTER.match(text, place)
    if outside is None:
        return False
    window = Span(max(0, span.start - _WINDOW_CHARS), span.end + _WINDOW_CHARS)
    signs = " " * (outside.end() - outside.start())
    bare = f"{text[window.start : outside.start()]}{signs}{text[outside.end() : window.end]}"
    return not cuts_word(bare, place - window.start)


_CURRENCY_BEFORE = re.compile(r"(?<![-+−–])[$€£¥₹₩₽₺₫₪₦₱฿₴₸₡₲₵₼₾₿]\s?\Z")
_CURRENCY_AFTER = re.compile(r"\s?[$€£¥₹₩₽₺₫₪₦₱฿₴₸₡₲₵₼₾₿](?![^\W_])")
_WINDOW_CHARS = 60
_ONE_KIND_OF_QUOTES = dict.fromkeys(map(ord, '"\uff02\u201c\u201d\u201e\u201f\u00ab\u00bb'), "'")
"""Quotation marks inside a quote may be of another kind, because a judge writes JSON."""
_QUESTION = re.compile(r"\s?[?？]")
MAX_PARTS = 50
"""Parts of a quote; one with more is in no text."""
MAX_PLACES = 300
"""Places of a part of a quote that are tried."""


def cuts_word(text: str, place: int) -> bool:
    """Return whether a place is inside a compound (`non-refundable`), a negation (`can't`), a number, or a code."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before in _JOINTS and place > 1:
        if text[place - 2].isalpha() and after.isalpha():
            return True
    elif before.isalpha():
        if after in _JOINTS and text[place + 1 : place + 2].isalpha():
            return True
        if _CONTRACTION.match(text, place) or _LANGUAGE_SIGN.match(text, place):
            return True
    return cuts_number(text, place) or _cuts_address(text, place)


def _cuts_address(text: str, place: int) -> bool:
    """Return whether a place is inside the address of a page or a mailbox or inside a path, not after its scheme."""
    if not (_ADDRESS_CHARACTER.match(text[place - 1]) and _ADDRESS_CHARACTER.match(text[place])):
        return False
    start = max(0, place - MAX_ADDRESS_CHARS)
    begin = next((at + 1 for at in range(place - 1, start - 1, -1) if not _ADDRESS_CHARACTER.match(text[at])), start)
    rest = _ADDRESS_REST.match(text, place, place + MAX_ADDRESS_CHARS)
    address = f"{text[begin:place]}{rest[0] if rest else ''}".rstrip(_AFTER_ADDRESS)
    inner = place - begin
    return inner < len(address) and _ADDRESS.match(address) is not None and not _SCHEME.fullmatch(address[:inner])


def _without_prefix(text: str) -> tuple[str, Quote]:
    """Return a quote without the turn and the speaker before it, and what these say about its source."""
    match = _PREFIX.match(text)
    if match is None:
        return text, Quote(())
    role = match["role"] or match["bracketed"] or match["named"] or ("tool" if match["result"] or match["tool"] else "")
    turn, session = (pattern.search(match[0]) for pattern in (_TURN_NUMBER, _SESSION_NUMBER))
    source = Quote((), role.lower(), int(turn[1]) if turn else None, int(session[1]) if session else None)
    return text[match.end() :], source


def _parts(text: str) -> tuple[str, ...]:
    pieces = _LEFT_OUT.split(text) if "..." in text or "…" in text else (text,)
    parts = tuple(part for piece in pieces if (part := _strip_edge(piece)))
    return parts if any(map(_has_word, parts)) else ()


def _strip_edge(part: str) -> str:
    return part.strip().strip(_EDGE)


def _has_word(part: str) -> bool:
    return any(map(str.isalnum, part))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _markup(text: str) -> Sequence[Replacement]:
    """Return the marks of Markdown in a text: pairs around words, what begins a line, and those of links."""
    if not may_have_markup(text):
        return ()
    lines = (Replacement(*match.span(), "") for match in _LINE_MARKUP.finditer(text))
    fixed = _without_overlaps((*lines, *link_marks(text)))
    return _without_overlaps((*fixed, *(Replacement(*mark, "") for mark in _emphasis(text, fixed))))


def _visible_marks(text: str) -> Sequence[Replacement]:
    """Return also what HTML shows in another way, and struck words, which say nothing any more.

    A mark that begins a line leaves an empty line, so that what is before it is not in the same clause.
    """
    if not may_have_markup(text):
        return ()
    seen = (
        mark if mark.replacement.isspace() or not is_blank(mark.replacement) else mark._replace(replacement="")
        for mark in _html(text)
    )
    struck = (Replacement(*span, "") for span in _struck(text))
    return _without_overlaps((*struck, *seen, *(_as_shown(text, mark) for mark in _markup(text))))


def _page_marks(text: str) -> Sequence[Replacement]:
    """Return also the numbers of lists and the bars of tables."""
    if not may_have_markup(text):
        return ()
    page = (_as_shown(text, mark) for mark in hidden_markup(text) if not _NOT_OF_PAGE.match(text, mark.start))
    return _without_overlaps((*_visible_marks(text), *page))


def _html(text: str) -> Iterator[Replacement]:
    """Yield what HTML shows in another way: tags, comments, entities, and the brackets of `<https://x.org>`."""
    for mark in hidden_markup(text) if "<" in text or "&" in text else ():
        if _BRACKETED_ADDRESS.match(text, mark.start, mark.end):
            yield Replacement(mark.start, mark.start + 1, "")
            yield Replacement(mark.end - 1, mark.end, "")
        elif text[mark.start] in "<&":
            yield mark


_BRACKETED_ADDRESS = re.compile(r"<(?:[a-z][a-z0-9+.-]{1,30}:|[^\s<>@]{1,64}@)[^\s<>]*>", re.IGNORECASE)
_NOT_OF_PAGE = re.compile(r"<|[ \t]*[-+][ \t]+[^\w\s]?\d")
"""What is a sign of a number although it begins a line, and what HTML has."""


def _as_shown(text: str, mark: Replacement) -> Replacement:
    begins_line = not mark.replacement and text[mark.end - 1 : mark.end].isspace()
    return mark._replace(replacement="\n") if begins_line else mark


def _without_overlaps(marks: Iterable[Replacement]) -> Sequence[Replacement]:
    separate: list[Replacement] = []
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if not separate or mark.start >= separate[-1].end:
            separate.append(mark)
    return separate


def _struck(text: str) -> Iterator[Span]:
    """Yield the words that are struck out, with their marks: `~~words~~`, `<del>words</del>`."""
    opened: dict[str, Span] = {}
    for match in _STRIKE.finditer(text) if "~~" in text or "<" in text else ():
        name = (match["open"] or match["close"] or match[0]).lower()
        start = opened.pop(name, None)
        if start is not None and not match["open"] and not _PARAGRAPH.search(text, start.end, match.start()):
            yield Span(start.start, match.end())
        elif not match["close"]:
            opened[name] = Span(*match.span())


def _emphasis(text: str, fixed: Sequence[Replacement]) -> Iterator[Span]:
    """Yield the marks that come in pairs around words, except those inside the marks that are fixed."""
    opened: list[tuple[str, int]] = []
    latest: dict[str, list[int]] = {}
    end = next_fixed = 0
    for run in _RUN.finditer(text):
        while next_fixed < len(fixed) and fixed[next_fixed].end <= run.start():
            next_fixed += 1
        if next_fixed < len(fixed) and fixed[next_fixed].start <= run.start():
            continue
        if opened and _PARAGRAPH.search(text, end, run.start()):
            opened.clear()
            latest.clear()
        end = run.end()
        marks = run[0]
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        if len(marks) > _MAX_MARKS:
            continue
        joins = bool(before and after and not is_boundary(before + after, 1))
        is_in_word = marks[0] in "*`" and before.isalpha() and after.isalpha()
        if latest.get(marks) and before.strip() and (is_in_word or not joins):
            place = latest[marks][-1]
            yield Span(opened[place][1], opened[place][1] + len(marks))
            yield Span(*run.span())
            while len(opened) > place:
                latest[opened.pop()[0]].pop()
        elif after.strip() and (is_in_word or not (joins or _is_word_end(before))):
            latest.setdefault(marks, []).append(len(opened))
            opened.append((marks, run.start()))


def _is_word_end(character: str) -> bool:
    """Return whether a mark after a character continues a word, as in `5*`; after Han and its kin, it does not."""
    return bool(character) and character.isalnum() and not is_boundary(character + "a", 1)
