"""How texts are compared: whether two are the same, whether one contains some words, and what a reader sees of it.

Both sides are folded first, so a difference in encoding never decides: Unicode forms (NFKC), invisible characters, and
the kinds of quotation marks, dashes, and white space. `fold` also ignores case (`str.casefold`) and the amount of white
space. Pages, evidence, and findings need the words as they are in the original; `FoldedText` maps them back.

A word boundary is that of UAX #29 with three changes that find more: punctuation other than `_` always separates words
("Ana" is a word of "Ana's" and of "user:Ana"), there is a boundary on both sides of each letter of a script that sets
no spaces between words (Han, Kana, Thai, Lao, Khmer, Myanmar, …), and between Hangul and other scripts, because Korean
attaches particles.

Source: Unicode Standard Annexes #15 (normalization forms) and #29 (text segmentation).

Providers cut the text of a message anywhere: at a citation, at the end of a streamed chunk, in the middle of a word.
They document that the parts are concatenated, so nothing is put between them.

Markup of Markdown and HTML is read in linear time, whatever a text holds.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import regex

MAX_TAG_CHARS = 1_000
"""Characters of a tag of HTML; a longer one counts as text."""
MAX_ADDRESS_CHARS = 2_000
"""Characters of the address of a link."""


class Replacement(NamedTuple):
    """A part of a text, from `start` up to `end`, and what a reader sees instead of it."""

    start: int
    end: int
    replacement: str


def may_have_markup(text: str) -> bool:
    """Return whether a text has a character or begins a line in a way that may be markup; most texts have none."""
    return _MAY_BE_ANY_MARKUP.search(text) is not None


def link_marks(text: str) -> Sequence[Replacement]:
    """Return the brackets and the address of each link and image: `[`, and `](https://…)`; its words stay."""
    if "](" not in text:
        return ()
    marks: list[Replacement] = []
    opened: list[tuple[int, int]] = []
    for match in _BRACKET.finditer(text):
        if match["open"]:
            opened.append(match.span())
        elif match["close"] and opened:
            start, end = opened.pop()
            if match["address"] and end < match.start():
                marks += [Replacement(start, end, ""), Replacement(*match.span(), "")]
    return sorted(marks)


def hidden_markup(text: str) -> Sequence[Replacement]:
    """Return all that a page shows in another way: links, tags, comments, entities, bars, and marks that begin a line.

    Marks of emphasis are not among them.
    """
    if not may_have_markup(text):
        return ()
    marks = sorted((*link_marks(text), *_html_marks(text), *_line_marks(text)))
    separate: list[Replacement] = []
    for mark in marks:
        if not separate or mark.start >= separate[-1].end:
            separate.append(mark)
    return separate


def inline_marks(text: str) -> Sequence[Replacement]:
    """Return all that a page shows in another way and that may stand inside a number.

    These are links, tags, comments, entities, marks of emphasis in pairs, and escapes, also those of LaTeX: `1{,}500`.
    A tag that ends a line or a cell shows a line break. Raised and lowered text stays as it is, because that changes
    what a number means: `2<sup>10</sup>`; after a point or a comma it does not.
    """
    if not _MAY_BE_MARKUP.search(text):
        return ()
    separate: list[Replacement] = []
    for mark in sorted((*link_marks(text), *_html_marks(text), *_emphasis_marks(text), *_escapes(text))):
        if separate and mark.start < separate[-1].end:
            continue
        if text[mark.start] == "<":
            if _RAISING_TAG.match(text, mark.start) and text[mark.start - 1 : mark.start] not in (".", ","):
                continue
            mark = mark._replace(replacement="\n" if mark.replacement else "")
        separate.append(mark)
    return separate


def _emphasis_marks(text: str) -> Iterator[Replacement]:
    """Yield the marks of emphasis in pairs: `24.**90**`; those that stand between digits twice, `2*3*4`, are signs."""
    opened: dict[str, tuple[int, int, bool]] = {}
    for match in _EMPHASIS_MARK.finditer(text):
        sign = match["sign"]
        if sign is None:
            if match[0][0] == "\n":
                opened.clear()
            continue
        start, end = match.span("sign")
        before, after = text[start - 1 : start] if start else " ", text[end : end + 1] or " "
        is_between_digits = before.isdigit() and after.isdigit()
        is_underscore = sign[0] == "_"
        opening = opened.pop(sign, None) if not before.isspace() and not (is_underscore and after.isalnum()) else None
        if opening is not None:
            if not (is_between_digits and opening[2]):
                yield Replacement(*opening[:2], "")
                yield Replacement(start, end, "")
        elif not after.isspace() and not (is_underscore and before.isalnum()):
            opened[sign] = (start, end, is_between_digits)


def _escapes(text: str) -> Iterator[Replacement]:
    for match in _ESCAPE.finditer(text):
        yield Replacement(*match.span(), "\u00a0" if match["space"] else match["mark"] or match["sign"])


def _html_marks(text: str) -> Iterator[Replacement]:
    if "&" in text:
        for match in _ENTITY.finditer(text):
            text_of_entity = match[0]
            for _ in range(_MAX_ESCAPES):
                text_of_entity = html.unescape(text_of_entity)
            if text_of_entity != match[0]:
                yield Replacement(*match.span(), text_of_entity)
    if "<" in text:
        place = 0
        while match := _TAG.search(text, place):
            place = match.end()
            if match[0] == "<!--":
                end = text.find("-->", place)
                if end < 0:
                    text = text[:place]  # no comment ends after this one
                    continue
                place = end + len("-->")
            yield Replacement(match.start(), place, " " if _BLOCKS.fullmatch(match["name"] or "") else "")


def _line_marks(text: str) -> Iterator[Replacement]:
    for match in _LINE_MARK.finditer(text):
        yield Replacement(*match.span(), "")
    for match in _BAR.finditer(text):
        yield Replacement(*match.span(), "" if match[0] in ("==", "||") else " ")


_MAX_ESCAPES = 3
"""How often an entity may be escaped: `&amp;amp;lt;`."""
_BRACKET = re.compile(
    r"\\."
    r"|(?P<open>!?\[)"
    rf"|(?P<close>\])(?P<address>\(\s{{0,9}}(?:<[^<>\n]{{0,{MAX_ADDRESS_CHARS}}}>"
    rf"|[^\s()<>]{{0,{MAX_ADDRESS_CHARS}}}+(?:\([^\s()]{{0,200}}\)[^\s()]{{0,200}}+){{0,9}})"
    r"(?:\s{1,9}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?\s{0,9}\))?",
    re.DOTALL,
)
_ENTITY = re.compile(r"&(?:amp;){0,2}(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")
_TAG = re.compile(
    r"<!--|</?(?P<name>[A-Za-z][A-Za-z0-9]{0,15})"
    rf"(?:[^<>A-Za-z0-9](?:(?:[^<>\"']|\"[^\"<]{{0,{MAX_TAG_CHARS}}}\"|'[^'<]{{0,{MAX_TAG_CHARS}}}')*+"
    rf"|[^<>]{{0,{MAX_TAG_CHARS}}}))?>"
)
_BLOCKS = re.compile(
    "address|article|aside|blockquote|br|dd|div|dl|dt|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|option"
    "|p|pre|section|table|tbody|td|tfoot|th|thead|tr|ul",
    re.IGNORECASE,
)
"""Tags that end a line or a cell, which separates words."""
_MAY_BE_MARKUP = re.compile(r"[&<*_~`\\{\[]")
_MAY_BE_ANY_MARKUP = re.compile(r"[&<*_~`\\{\[|]|==|^[ \t]*(?:[•‣◦+>#-]|[0-9]{1,3}[.)])", re.MULTILINE)
_RAISING_TAG = re.compile("</?(?:sup|sub)(?![A-Za-z0-9])", re.IGNORECASE)
_EMPHASIS_MARK = re.compile(
    r"\\.|\n[ \t]*\n|(?P<sign>(?<!\*)\*{1,3}(?!\*)|(?<!_)_{1,3}(?!_)|(?<!~)~~(?!~)|`++)", re.DOTALL
)
_ESCAPE = re.compile(
    r"\\(?:(?<=[0-9]\\)(?P<space>[,;: ])(?=[0-9])|(?P<sign>[!-/:-@\[-`{-~]))|(?<=[0-9])\{(?P<mark>[.,])\}(?=[0-9])"
)
"""A sign that is written with a backslash, and what LaTeX writes between the digits of one number."""
_LINE_MARK = re.compile(r"^[ \t]*(?:(?:[*•‣◦+-]|#{1,6}|[0-9]{1,3}[.)])[ \t]+|>[ \t]*)++", re.MULTILINE)
_BAR = re.compile(r"==|\|\||[ \t]?(?<!\|)\|(?!\|)[ \t]?")
"""What separates the cells of a table, and what highlights or hides words: `==word==`, `||word||`."""


def join_text_parts(parts: Iterable[str]) -> str:
    """Return the text of a message that holds these text parts."""
    return "".join(parts)


_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{scx=Hiragana}\p{scx=Katakana}\p{Bopomofo}\p{Yi}\p{Tibetan}\p{lb=SA}"
"""Scripts that set no spaces between words; line breaking class SA has Thai, Lao, Khmer, Myanmar, and their kin."""

NOT_AFTER_WORD = rf"(?<![^\W{_SPACELESS}\p{{Hangul}}])(?<!\d)"
"""Begins a `regex` pattern for a number or Latin words: what comes right before is not part of the same word."""
NOT_BEFORE_WORD = rf"(?![^\W{_SPACELESS}\p{{Hangul}}])(?!\d)(?!\p{{M}})"
"""Ends a `regex` pattern for a number or Latin words: what comes right after is not part of the same word."""

_JOINING = rf"(?:[^\W{_SPACELESS}]|\d)"
_HANGUL = r"\p{Hangul}"
_BEFORE_HANGUL, _AFTER_HANGUL = rf"(?<!{_HANGUL}|\p{{M}})(?={_HANGUL})", rf"(?<={_HANGUL})(?!{_HANGUL})"
_IN_OTHER_SCRIPTS = (
    rf"(?:(?<![\x00-\x7f])|(?![\x00-\x7f]))(?:(?<!{_JOINING})|(?!{_JOINING})|{_BEFORE_HANGUL}|{_AFTER_HANGUL})"
)
BOUNDARY = rf"(?:(?<!\w)|(?!\w)|{_IN_OTHER_SCRIPTS})(?!\p{{M}})"
"""Part of a `regex` pattern for folded text: a word boundary, as `is_boundary` finds it."""

_CONTROLS = r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
_INVISIBLE = regex.compile(rf"[\p{{Cf}}\p{{Default_Ignorable_Code_Point}}{_CONTROLS}]")
_VISIBLE = regex.compile(r"[^\s\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]")
_VISIBLE_ASCII = re.compile(r"[!-~]")
"""What nearly all texts have; `regex` gives way to other threads for each search, and waits for them."""
_ASCII_INVISIBLE = re.compile(rf"[{_CONTROLS}]")
_WORDS = regex.compile(rf"[{_SPACELESS}{_HANGUL}--[\d\W]]\p{{M}}*|(?:[^\W{_SPACELESS}{_HANGUL}]|\d)+", regex.V1)

_RAISED = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b"
_LOWERED = "\u2080-\u208b"
_FRACTIONS = "\u00bc-\u00be\u2150-\u215f\u2189"
_SIGNS = "\u2120\u2122"
_ATTACHED = re.compile(
    rf"(?P<raised>[{_RAISED}]+)|(?<=\d)(?:(?P<lowered>[{_LOWERED}])|[{_FRACTIONS}])|(?<=\w)[{_SIGNS}]"
)
"""What NFKC would make plain or merge with what is before it: x², 10₂, 1½, Acme™ are not x2, 102, 11/2, Acmetm."""
_FOLLOWING = re.compile(rf"[{_RAISED}{_LOWERED}{_FRACTIONS}{_SIGNS}]")

_FRACTION = re.compile(f"([{_FRACTIONS}])")
_RAISED_OR_LOWERED = re.compile(f"[{_RAISED}{_LOWERED}]+")
_ACCENTS = re.compile("[\u0300-\u0333\u0339-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]")
"""Accents; those that are left after NFC are on no letter that has them."""
_POINTS = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
"""Accents, strokes through letters, circles around them, and the vowel points of Hebrew and Arabic."""
_LETTER_SIGNS: dict[int, str | None] = {
    **{
        first + place: letter
        for first in (0x1F1E6, 0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x249C)
        for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")
    },
    **{
        code: str(unicodedata.digit(chr(code)))
        for code in (*range(0x2460, 0x2500), *range(0x2776, 0x2794), *range(0x1F100, 0x1F10D))
        if unicodedata.digit(chr(code), None) is not None
    },
    0x1F18E: "ab",
    0x1F191: "cl",
    0x1F192: "cool",
    0x1F193: "free",
    0x1F194: "id",
    0x1F195: "new",
    0x1F196: "ng",
    0x1F197: "ok",
    0x1F198: "sos",
    0x1F199: "up!",
    0x1F19A: "vs",
    0x0131: "i",
    0x2139: "i",
    0x24C2: "m",
    0x0640: None,
    0x07FA: None,
}
"""Signs that show a letter or a digit, such as letters in boxes and in flags, and those that only stretch a word.

Among them is the dotless i, because `I` may be either.
"""

_BARE_SIGN = "\ufdd0"
"""Stands for a sign that is not a part of a word; no text has this character, which Unicode keeps free."""

_SINGLE_QUOTES = (
    "\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u2035\u02b9\u02bb\u02bc\u02bd\u02c8\u055a\ua78c\u275b\u275c`"
)
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u02ba\u301d\u301e\u301f\u275d\u275e\u300c\u300d\u300e\u300f"
QUOTATION_MARKS = f"'\"\uff02\uff07{_SINGLE_QUOTES}{_DOUBLE_QUOTES}".replace("`", "")
"""All quotation marks and apostrophes; a backtick is markup, too."""
_DASHES = (
    "\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2053\u2212\u2e3a\u2e3b\u2e40\u30a0\U00010ead"
)
_MARKS = {
    **dict.fromkeys(_SINGLE_QUOTES, "'"),
    **dict.fromkeys(_DOUBLE_QUOTES, '"'),
    **dict.fromkeys(_DASHES, "-"),
    "\u301c": "~",
    "\u2044": "/",
    "\u2800": " ",
}
"""Quotation marks, dashes, and spaces that NFKC keeps apart; it maps others, such as full-width ones, to these."""
_EMPHASIS = "*_`~\\"
"""Characters that emphasis may put between letters."""
_EMPHASIS_BETWEEN_DIGITS = re.compile(r"[0-9][.,]?[*_`~\\]+[.,]?[0-9]")
_ACUTE = re.compile("[\\s\u2800]\u0301")
"""What NFKC makes of an acute accent that stands alone, which people type as an apostrophe."""
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile(r"[^\S\n]")
_CONTROL_SPACE = re.compile(r"[\t\x0b-\r\x1c-\x1f]")
_ASCII_FOLD = {
    **{code: None for code in range(128) if _ASCII_INVISIBLE.match(chr(code))},
    **{code: chr(code).lower() for code in range(ord("A"), ord("Z") + 1)},
    ord("`"): "'",
}


class Span(NamedTuple):
    """Where some words are in a text: from the index `start` up to, not including, `end`."""

    start: int
    end: int


def fold(text: str, *, keeps_marks: bool = False) -> str:
    """Return what texts share that differ only in encoding, case, or the amount of white space.

    With `keeps_marks`, the kinds of dashes and quotation marks stay apart.
    """
    return " ".join(_fold_characters(text, case=False, keeps_marks=keeps_marks).split())


def same_text(a: str, b: str, *, ignore_case: bool = False) -> bool:
    """Return whether two texts are the same except for their encoding and for white space at their ends.

    With `ignore_case`, the amount of white space inside them does not count either.
    """
    if a == b:
        return True
    return fold(a) == fold(b) if ignore_case else fold_encoding(a) == fold_encoding(b)


def contains(text: str, words: str) -> bool:
    """Return whether a text contains some words, also inside longer words; see `FoldedText.contains`."""
    return FoldedText(text).contains(words)


def contains_words(text: str, words: str) -> bool:
    """Return whether a text contains some words as whole words; see `FoldedText.contains`."""
    return FoldedText(text).contains(words, whole=True)


def without_signs(text: str) -> str:
    """Return a text of the same length without the signs that touch words: those of `Ana¹`, `№4711`, and `5㎏`.

    NFKC turns such a sign into letters or digits, which would continue the word.
    """
    if text.isascii():
        return text
    return text.translate({ord(sign): _BARE_SIGN for sign in filter(_is_sign, set(text))})


def is_blank(text: str | None) -> bool:
    """Return whether a text shows nothing: it is empty, or has only white space and invisible characters."""
    return not text or (_VISIBLE_ASCII.search(text) is None and _VISIBLE.search(text) is None)


def is_boundary(text: str, place: int) -> bool:
    """Return whether a word may begin or end before the character at an index; both ends of a text are boundaries."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if _is_mark(after):
        return False
    return not (_joins(before) and _joins(after) and (_is_hangul(before) == _is_hangul(after) or _is_mark(before)))


def split_words(text: str) -> list[str]:
    """Return the folded words of a text in order; a letter of a script without spaces or of Hangul is a word."""
    return _WORDS.findall(fold(text))


def encoding_note(text: str, words: str) -> str:
    """Return how a text writes some words that it contains, if only their encoding differs; otherwise an empty text."""
    if " ".join(words.casefold().split()) in " ".join(text.casefold().split()):
        return ""
    span = FoldedText(text).find(words)
    return "" if span is None else f"only the encoding differs: {text[span.start : span.end]!r}"


class FoldedText:
    """A text that words are looked up in; it is folded once, and places are mapped to the original only when needed."""

    def __init__(self, text: str, *, keeps_marks: bool = False) -> None:
        self.text = text
        self.keeps_marks = keeps_marks
        self.folded = fold(text, keeps_marks=keeps_marks)

    def contains(self, words: str, *, whole: bool = False) -> bool:
        """Return whether the text contains some words, with `whole` only as whole words.

        White space at their ends does not count. Words that show nothing, such as a line break, are looked up as they
        are, and so are dashes and quotation marks without words (`—` is not `-`); no text contains an empty one.
        """
        if _are_marks(words):
            return next(self.find_all(words), None) is not None
        needle = _fold_words(words)
        if not needle:
            return bool(words) and words in self.text
        if not whole:
            return needle in self.folded
        return next(self._places(needle, whole, 0), None) is not None or (
            self._bare is not None and self._bare.contains(words, whole=True)
        )

    def find(self, words: str, *, whole: bool = False) -> Span | None:
        """Return where in the original text some words stand first, None where they do not."""
        return next(self.find_all(words, whole=whole), None)

    def find_all(self, words: str, *, whole: bool = False) -> Iterator[Span]:
        """Yield where in the original text some words stand, without overlaps."""
        if not self.keeps_marks and _are_marks(words):
            yield from self._with_marks.find_all(words)
            return
        needle = fold(words, keeps_marks=True) if self.keeps_marks else _fold_words(words)
        places = self._places(needle, whole, 0) if needle else ()
        if self._bare is None or not whole:
            for place in places:
                yield self.span(place, place + len(needle))
            return
        spans = (self.span(place, place + len(needle)) for place in places)
        yield from _merge(spans, self._bare.find_all(words, whole=True))

    def matches(self, pattern: regex.Pattern[str]) -> Iterator[Span]:
        """Yield where in the original text a pattern for folded text matches, also right before or after a sign."""
        spans = (self.span(match.start(), match.end()) for match in pattern.finditer(self.folded))
        yield from spans if self._bare is None else _merge(spans, self._bare.matches(pattern))

    def span(self, start: int, end: int) -> Span:
        """Return where a part of the folded text is in the original text, in whole characters."""
        if self.text.isascii() and len(self.text) == len(self.folded):
            return Span(start, end)
        starts, ends = self._origins
        if start >= end:
            place = starts[start] if start < len(starts) else len(self.text)
            return Span(place, place)
        return Span(starts[start], ends[end - 1])

    def _places(self, needle: str, whole: bool, start: int) -> Iterator[int]:
        while (place := self.folded.find(needle, start)) >= 0:
            end = place + len(needle)
            if not whole or (is_boundary(self.folded, place) and is_boundary(self.folded, end)):
                yield place
                start = end
            else:
                start = place + 1

    @cached_property
    def _with_marks(self) -> FoldedText:
        return FoldedText(self.text, keeps_marks=True)

    @cached_property
    def _bare(self) -> FoldedText | None:
        """The text without the signs that are not a part of a word, None where it has none."""
        bare = without_signs(self.text)
        return None if bare == self.text else FoldedText(bare)

    @cached_property
    def _origins(self) -> tuple[list[int], list[int]]:
        """Where in the original text the source of each folded character starts and ends."""
        starts: list[int] = []
        ends: list[int] = []
        after_space = True
        for start, end in _clusters(self.text):
            for character in _fold_cluster(self.text[start:end], self.keeps_marks):
                is_space = character.isspace()
                if not (is_space and after_space):
                    starts.append(start)
                    ends.append(end)
                after_space = is_space
        return starts, ends


class PlainText:
    """A text in plain characters, with the place of each in the original: NFKC, without invisible characters.

    It may say more than the original: raised and lowered digits, digits of other scripts, and letters in circles and
    boxes (`🅰`, `🇦`) become plain ones, and strokes, vowel points, and stretching (`ـ`) are left out.

    Args:
        original: The text.
        without: Characters that are left out.
        shown: Whether to read it as a page shows it: without tags, comments, addresses of links, and marks that begin
            a line, and with the characters that entities stand for.
        apart: Whether raised and lowered digits stay apart from what is before them: `10 2` for `10²`.
    """

    def __init__(self, original: str, *, without: str = "", hide_markup: bool = False, apart: bool = False) -> None:
        self.original = self.text = original
        self._places: list[Span] = []
        marks = hidden_markup(original) if hide_markup else ()
        if not marks and _is_plain(original) and not any(map(original.__contains__, without)):
            return
        characters: list[str] = []
        end = 0
        for mark in (*marks, Replacement(len(original), len(original), "")):
            for first, last in _clusters(original[end : mark.start]):
                span = Span(end + first, end + last)
                plain = _plain_cluster(original[span.start : span.end], without, apart)
                characters.append(plain)
                self._places += [span] * len(plain)
            plain = "".join(
                _plain_cluster(mark.replacement[slice(*part)], without, apart) for part in _clusters(mark.replacement)
            )
            characters.append(plain)
            self._places += [Span(mark.start, mark.end)] * len(plain)
            end = mark.end
        self.text = "".join(characters)

    def span(self, start: int, end: int) -> Span:
        """Return where a part of the plain text is in the original, in whole characters."""
        return Span(self._places[start].start, self._places[end - 1].end) if self._places else Span(start, end)


def plain_readings(text: str) -> Iterator[PlainText]:
    """Yield the ways to read a text in plain characters that differ.

    These are the text as it is, without emphasis between digits, with raised digits apart, and as a page shows it.
    """
    yield PlainText(text)
    if _EMPHASIS_BETWEEN_DIGITS.search(text):
        yield PlainText(text, without=_EMPHASIS)
    if _RAISED_OR_LOWERED.search(text):
        yield PlainText(text, apart=True)
    if hidden_markup(text):
        yield PlainText(text, hide_markup=True)


class GuardedText:
    """A text in which words are looked up that must not be there: it contains them if any way to read it does.

    It is read as it is, in plain characters without emphasis (`sec**ret**`, `s_e_c_r_e_t`, `x²` for `x2`), and as a
    page shows it (`se<b>cr</b>et`, `se&shy;cret`, `[sec](https://x.org)ret`). A code of four characters or more with
    digits is also found with marks and spaces in it: `47-11` for `4711`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded = FoldedText(text)
        plain = [PlainText(text, without=_EMPHASIS)]
        if hidden_markup(text):
            plain.append(PlainText(text, without=_EMPHASIS, hide_markup=True))
        self._plain = [(reading, FoldedText(reading.text)) for reading in plain]

    @property
    def readings(self) -> list[str]:
        """The text as it is, and in each plain form that differs."""
        forms = (self.text, PlainText(self.text).text, *(plain.text for plain, _ in self._plain))
        return list(dict.fromkeys(forms))

    def contains(self, words: str, *, whole: bool = False) -> bool:
        """Return whether the text may contain some words, with `whole` only as whole words."""
        if _are_marks(words):
            return self._find_marks(words) is not None
        if self._folded.contains(words, whole=whole):
            return True
        wordings = dict.fromkeys((words, _plain_words(words)))
        if any(folded.contains(wording, whole=whole) for _, folded in self._plain for wording in wordings):
            return True
        return next(self._codes(words), None) is not None

    def find(self, words: str, *, whole: bool = False) -> Span | None:
        """Return where in the text some words may stand first, None where they do not."""
        if _are_marks(words):
            return self._find_marks(words)
        if (span := self._folded.find(words, whole=whole)) is not None:
            return span
        for plain, folded in self._plain:
            for wording in dict.fromkeys((words, _plain_words(words))):
                if (span := folded.find(wording, whole=whole)) is not None:
                    return plain.span(*span)
        return next(self._codes(words), None)

    def _find_marks(self, marks: str) -> Span | None:
        """Return where dashes or quotation marks stand first, as they are or as an entity."""
        entities = (
            Span(mark.start, mark.end) for mark in hidden_markup(self.text) if marks.strip() in mark.replacement
        )
        return self._folded.find(marks) or next(entities, None)

    def matches(self, pattern: regex.Pattern[str]) -> Iterator[Span]:
        """Yield where in the text a pattern for folded text may match."""
        spans = [plain.span(*span) for plain, folded in self._plain for span in folded.matches(pattern)]
        return _merge(self._folded.matches(pattern), spans)

    def _codes(self, words: str) -> Iterator[Span]:
        """Yield where a code may stand with marks and spaces between its characters."""
        pattern = _code_pattern(words)
        if pattern is not None:
            for plain, _ in self._plain:
                yield from (plain.span(*match.span()) for match in pattern.finditer(plain.text))


MIN_CODE_CHARS = 4
"""Letters and digits of a code that is found with marks and spaces in it: shorter ones are in many texts by chance."""
GAP = r"[\W_]{0,3}"
"""Marks and spaces that may stand between the characters of such a code."""
_MAX_CODE_CHARS = 80
_MIN_CODE_DIGITS = 2
_CODE_SIGN = re.compile(r"[^\W_]|[.,:'](?![0-9]{3}(?![0-9]))")


@lru_cache(maxsize=4096)
def _code_pattern(words: str) -> regex.Pattern[str] | None:
    """Return a pattern that finds a code with any marks in it, None where the words are not a code.

    Each word of a code has a digit. A mark for decimals stays one: `2490` is not `24.90`.
    """
    plain = _plain_words(words).strip()
    signs = _CODE_SIGN.findall(plain)
    count = sum(sign.isalnum() for sign in signs)
    digits = sum(sign.isdecimal() for sign in signs)
    if not MIN_CODE_CHARS <= count <= _MAX_CODE_CHARS or digits < _MIN_CODE_DIGITS:
        return None
    if not all(any(map(str.isdecimal, word)) for word in plain.split()):
        return None
    spread = GAP.join(regex.escape(sign) if sign.isalnum() else r"[\W_]" for sign in signs)
    before = "(?<![0-9])" if signs[0].isdecimal() else NOT_AFTER_WORD
    after = "(?![0-9])" if signs[-1].isdecimal() else NOT_BEFORE_WORD
    return regex.compile(f"{before}{spread}{after}", regex.IGNORECASE)


@lru_cache(maxsize=4096)
def _plain_words(words: str) -> str:
    return PlainText(words, without=_EMPHASIS).text or words


def _is_plain(text: str) -> bool:
    """Return whether a text has no character that a plain text writes in another way."""
    return text.isascii() and not _ASCII_INVISIBLE.search(text) and not _CONTROL_SPACE.search(text)


@lru_cache(maxsize=16_384)
def _plain_cluster(cluster: str, without: str, apart: bool) -> str:
    """Return a character, with what may combine with it, in plain characters; a line break stays one."""
    plain = _INVISIBLE.sub("", cluster).translate(_LETTER_SIGNS)
    if apart:
        plain = _RAISED_OR_LOWERED.sub(r" \g<0>", plain)
    plain = _without_points(unicodedata.normalize("NFC", plain))
    characters: list[str] = []
    for character in _compatible(plain):
        mark = _MARKS.get(character, character)
        if character in without or mark in without:
            continue
        if mark.isdecimal():
            mark = str(unicodedata.decimal(mark))
        characters.append(" " if _SPACES.match(mark) else mark)
    return "".join(characters)


def _compatible(cluster: str) -> str:
    """Return the NFKC of a character; fractions stay as they are, because NFKC would make 51/2 of 5½."""
    if not _FRACTION.search(cluster):
        return unicodedata.normalize("NFKC", cluster)
    return "".join(part if _FRACTION.match(part) else _compatible(part) for part in _FRACTION.split(cluster))


def _without_points(cluster: str) -> str:
    """Return a character without strokes, vowel points, and the accents that no letter has."""
    if cluster.isascii() or not _POINTS.search(cluster):
        return cluster
    bare = _POINTS.sub("", cluster)
    if _ACCENTS.search(cluster) and bare:
        return unicodedata.normalize("NFD", bare[0])[0] + bare[1:]
    return bare


def fold_encoding(text: str) -> str:
    """Return a text with one form of each character, its case and the amount of its white space as they are."""
    characters = _fold_characters(text, case=True)
    return _SPACES.sub(" ", _LINE_ENDS.sub("\n", characters)).strip()


def _fold_characters(text: str, *, case: bool, keeps_marks: bool = False) -> str:
    """Return a text with one form of each character, except white space."""
    if text.isascii() and not keeps_marks:
        if not case:
            return text.translate(_ASCII_FOLD)
        return _ASCII_INVISIBLE.sub("", text).replace("`", "'")
    for character in filter(_is_invisible, set(text)):
        text = text.replace(character, "")
    if _FOLLOWING.search(text):
        text = _ATTACHED.sub(_detach, text)
    text = unicodedata.normalize("NFKC", text)
    if not case:
        text = unicodedata.normalize("NFKC", text.casefold().replace("i\u0307", "i"))  # from "İ"
    if keeps_marks:
        return text
    if "\u0301" in text:
        text = _ACUTE.sub("'", text)
    for mark in _MARKS.keys() & set(text):
        text = text.replace(mark, _MARKS[mark])
    return text


def _merge(spans: Iterable[Span], more: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans of both in order, without overlaps."""
    end = 0
    for span in sorted({*spans, *more}):
        if span.start >= end:
            yield span
            end = span.end


def _detach(match: re.Match[str]) -> str:
    sign = "^" if match["raised"] else "_" if match["lowered"] else " "
    return sign + match[0]


@lru_cache(maxsize=4096)
def _fold_words(words: str) -> str:
    return fold(words)


@lru_cache(maxsize=4096)
def _are_marks(words: str) -> bool:
    """Return whether words are only punctuation, with a dash or a quotation mark that folding makes another one."""
    return not any(map(str.isalnum, words)) and not _MARKS.keys().isdisjoint(words)


@lru_cache(maxsize=4096)
def _fold_cluster(cluster: str, keeps_marks: bool) -> str:
    return _fold_characters(cluster, case=False, keeps_marks=keeps_marks)


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text that fold independently of each other: a character with what may combine with it."""
    start = 0
    for place, character in enumerate(text):
        if place and not _follows(character):
            yield start, place
            start = place
    if text:
        yield start, len(text)


@lru_cache(maxsize=4096)
def _follows(character: str) -> bool:
    """Return whether a character may combine with the one before it."""
    if _is_invisible(character) or _FOLLOWING.match(character):
        return True
    first = unicodedata.normalize("NFKD", character)[0]
    return _is_mark(first) or "\u1160" <= first <= "\u11ff" or "\ud7b0" <= first <= "\ud7fb"


@lru_cache(maxsize=4096)
def _is_invisible(character: str) -> bool:
    return _INVISIBLE.match(character) is not None


@lru_cache(maxsize=4096)
def _is_sign(character: str) -> bool:
    """Return whether NFKC makes letters or digits of another, raised, or lowered character."""
    folded = unicodedata.normalize("NFKC", character)
    if folded == character or not any(map(_joins, folded)):
        return False
    return unicodedata.category(character) in _SIGN_CATEGORIES or unicodedata.decomposition(character).startswith(
        ("<super>", "<sub>")
    )


@lru_cache(maxsize=4096)
def _joins(character: str) -> bool:
    return _JOINING_CHARACTER.match(character) is not None


@lru_cache(maxsize=4096)
def _is_hangul(character: str) -> bool:
    return _HANGUL_CHARACTER.match(character) is not None


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


_SIGN_CATEGORIES = frozenset(("No", "Nl", "So", "Sc", "Sm"))
_JOINING_CHARACTER = regex.compile(_JOINING)
_HANGUL_CHARACTER = regex.compile(_HANGUL)
