"""Quotes: where the words that somebody quotes stand in a text.

A quote may differ from the text in encoding, case, the amount of white space, and markup, may leave words out where it
says `…`, may be escaped as in JSON, and may name the turn and the speaker before the words. It never begins or ends
inside a word or a number: "paid" is not quoted from "unpaid", "I can" not from "I can't", and 12 not from 12,500. It
never leaves out a negation of its words either: "sent" is not quoted from "not sent".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, islice

from vivavoce.comparing.markup import link_marks
from vivavoce.comparing.numbers import cuts_number
from vivavoce.comparing.text import QUOTATION_MARKS, FoldedText, Span, is_boundary

_EDGE = f"{QUOTATION_MARKS} \t\r\n\u00a0"
_ROLES = "user|assistant|tool|system|developer"
_LEFT_OUT = re.compile(r"\[(?:\.\.\.|…)\]|\((?:\.\.\.|…)\)|\.\.\.|…")
_OUTER_PUNCTUATION = re.compile(rf"(?<=[{re.escape(QUOTATION_MARKS)}])[.,;:!?]+\s*\Z")
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
_CONTRACTION = re.compile("['\u2019\u02bc\uff07]t(?!\\w)", re.IGNORECASE)

_RUN = re.compile(r"(?<!\\)(?:\*+|_+|`+)")
_MAX_MARKS = 3
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
        if len(parts) > MAX_PARTS:
            return ()
        spans: list[Span] = []
        end = 0
        for part in parts:
            places = (span for span in folded.find_all(part, whole=True) if span.start >= end)
            is_first, is_last = not spans, len(spans) == len(parts) - 1
            span = next(
                (span for span in islice(places, MAX_PLACES) if self._has(folded.text, span, is_first, is_last)), None
            )
            if span is None:
                return ()
            if spans and _NEGATIONS.search(folded.text, end, span.start):
                return ()
            spans.append(span)
            end = span.end
        return spans

    def _has(self, text: str, span: Span, is_first: bool, is_last: bool) -> bool:
        """Return whether a part of a quote may stand at a place, as the text is and as it is shown."""
        if _cuts(text, span, is_first, is_last, is_shown=text is not self.text):
            return False
        if not self._removed or text is not self.text:
            return True
        shown = Span(*(self._rendered_places[place] for place in span))
        return not _cuts(self.rendered.text, shown, is_first, is_last, is_shown=True)


def _cuts(text: str, span: Span, is_first: bool, is_last: bool, *, is_shown: bool) -> bool:
    """Return whether a span begins or ends inside a word or a number, or leaves out a negation of its words.

    A text that is shown without the marks that begin its lines has only negations in the same line.
    """
    first, last = max(0, span.start - _CLAUSE_CHARS), span.end + _CLAUSE_CHARS
    if is_shown or not text[span.start].islower():  # a sentence begins with its line
        first = max(first, text.rfind("\n", first, span.start) + 1)
    if is_shown:
        last = min(last, len(text) if (end := text.find("\n", span.end, last)) < 0 else end)
    if is_first and _says_something(text, span) and _NEGATED_BEFORE.search(text, first, span.start):
        return True
    if is_last and _NEGATED_AFTER.match(text, span.end, last):
        return True
    return any(cuts_word(text, place) for place in span)


def _says_something(text: str, span: Span) -> bool:
    """Return whether a negation before a span changes what it says: a name or an amount, and a new clause, keep it."""
    quote = text[span.start : span.end]
    words = _QUOTED_WORD.findall(quote)
    is_name = bool(words) and all(any(map(str.isdigit, word)) for word in words)
    return not is_name and _NEW_CLAUSE.match(quote) is None


MAX_PARTS = 50
"""Parts of a quote; one with more is in no text."""
MAX_PLACES = 300
"""Places of a part of a quote that are tried."""
_CLAUSE_CHARS = 80
_NEGATION_WORDS = {
    "English": "not|never|no|none|nor|neither|nobody|nothing|nowhere|hardly|cannot|without|unable|(?:do|does|did|is|are"
    "|was|were|ca|wo|could|would|should|has|have|had)nt|(?:fail(?:s|ed)?|refus(?:e|es|ed)|declin(?:e|es|ed)) to"
    "|n['’ʼ]t",
    "German, Dutch": r"nicht|nichts|kein\w*|nie|niemals|niemand|ohne|weder|niet|niets|geen|nooit|zonder",
    "Danish, Norwegian, Swedish": "ikke|ikkje|inte|ej|aldrig|aldri|ingen|ingenting|inga|inget|intet|utan|uten|uden",
    "French, Italian": r"ne|pas|jamais|sans|aucun\w*|ni|non(?![-‐‑])|mai|nessun\w*|senza|né",
    "Spanish, Portuguese": r"nunca|jamás|tampoco|ning[uú]n\w*|sin(?! embargo)|não|nao|nem|nenhum\w*|sem",
    "Polish, Czech, Hungarian, Turkish": "nigdy|bez|ani|nikdy|není|nem|nincs|nélkül|değil|yok|asla|hayır",
    "Russian, Ukrainian, Bulgarian": "не|нет|ни|никогда|нельзя|без|ні|немає|ніколи|нема|няма",
    "Greek": "δεν|δε|μην|μη|όχι|χωρίς|ποτέ",
    "Arabic, Persian, Urdu, Hebrew": "لا|لم|لن|ليس|ليست|غير|بدون|نه|نیست|نہیں|לא|אין|אל|ללא|בלי",
    "Hindi, Indonesian, Vietnamese": "नहीं|नही|मत|बिना|tidak|bukan|belum|jangan|tanpa|không|chưa|chẳng",
}
_NEGATION_SIGN = "[没沒不未無无](?!线|線|动产|動產|错|錯|来|來|关系|關係|过|過|论|論|仅|僅|但)"
_NEGATION_SIGNS = rf"{_NEGATION_SIGN}|ない|ません|なかった|안(?= )|않|못|없|아니|ไม่|មិន"
"""Negations of Chinese, Japanese, Korean, Thai, and Khmer, where words need no spaces between them."""
_NEGATION = rf"(?:(?<![^\W_])|(?=n['’ʼ]t))(?:(?:{'|'.join(_NEGATION_WORDS.values())})(?![^\W_])|n['’](?=[^\W\d_]{{3}}))"
_NEGATIONS = re.compile(rf"{_NEGATION}|{_NEGATION_SIGNS}", re.IGNORECASE)
"""Words that turn a statement around; a quote may not leave them out."""
_GAP = r"(?:[^\w.,;:!?…()\[\]{}—–|\n。，、；：！？-]|_|\n(?![\n*•#>|0-9-]))"
"""What may stand between two words of a clause."""
_CONJUNCTION = (
    "and|but|or|then|so|because|although|though|while|whereas|und|oder|sondern|obwohl|aber|dann|weil|et|mais|puis|y|pero"
    "|e|ma|mas|og|och|men|en|maar|и|но|а|i|ale|ve|ama"
)
_NEW_CLAUSE = re.compile(rf"(?:{_CONJUNCTION})(?![^\W_])", re.IGNORECASE)
_QUOTED_WORD = re.compile(r"[^\W_][\w'’.,-]*")
_WORDS_BETWEEN = rf"(?:{_GAP}+(?!(?:{_CONJUNCTION})(?![^\W_]))[^\W_][\w'’-]{{0,30}}){{0,3}}"
_NEGATED_BEFORE = re.compile(
    rf"(?!not only|not just|nicht nur|no doubt|no problem){_NEGATION}{_WORDS_BETWEEN}{_GAP}*\Z"
    rf"|{_NEGATION_SIGN}[^\s.,;:!?。，、；：！？]{{0,6}}\Z|(?:안|못) \Z|ไม่[^\s.,;:!?]{{0,8}}\Z|មិន[^\s។]{{0,8}}\Z",
    re.IGNORECASE,
)
"""A negation before a quote in the same clause, with up to three words between: `No` in `No valid voucher`."""
_NEGATED_AFTER = re.compile(
    rf"{_GAP}*(?:not(?! only| just)|never|cannot|n['’ʼ]t|niemals|nie|nooit|aldrig|aldri|ne|pas|jamais|değil|не"
    r"|नहीं|نہیں)(?![^\W_])"
    rf"|{_WORDS_BETWEEN}{_GAP}+(?:nicht(?! nur)|niet|ikke|ikkje|inte)(?![^\W_])"
    r"|[ぁ-ん]{0,6}(?:ない|なかった|なく|ません)|[가-힣]{0,2} ?(?:않|못하|아니|없)|ไม่",
    re.IGNORECASE,
)
"""A negation after a quote in the same clause: `not` after `it was`, `nicht` after `ich zahle`."""


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
        if _CONTRACTION.match(text, place):
            return True
    return cuts_number(text, place)


def _is_letter(character: str) -> bool:
    return character.isalpha()


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
    """Return the marks of Markdown in a text: pairs around words, what begins a line, and those of links."""
    fixed = [Span(*match.span()) for match in _LINE_MARKUP.finditer(text)] if text else []
    fixed = sorted((*fixed, *(Span(mark.start, mark.end) for mark in link_marks(text))))
    return sorted((*fixed, *_emphasis(text, fixed)))


def _emphasis(text: str, fixed: Sequence[Span]) -> Iterator[Span]:
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
        if latest.get(marks) and before.strip() and not joins:
            place = latest[marks][-1]
            yield Span(opened[place][1], opened[place][1] + len(marks))
            yield Span(*run.span())
            while len(opened) > place:
                latest[opened.pop()[0]].pop()
        elif after.strip() and not joins and not _is_word_end(before):
            latest.setdefault(marks, []).append(len(opened))
            opened.append((marks, run.start()))


def _is_word_end(character: str) -> bool:
    """Return whether a mark after a character continues a word, as in `5*`; after Han and its kin, it does not."""
    return bool(character) and character.isalnum() and not is_boundary(character + "a", 1)
