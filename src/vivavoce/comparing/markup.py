"""Markup of Markdown and HTML: which parts of a text a reader does not see, and what stands there instead.

Every function reads a text in linear time, whatever it holds.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_TAG_CHARS = 1_000
"""Characters of a tag of HTML; a longer one counts as text."""
MAX_ADDRESS_CHARS = 2_000
"""Characters of the address of a link."""


class Replacement(NamedTuple):
    """A part of a text, from `start` up to `end`, and what a reader sees instead of it."""

    start: int
    end: int
    shown: str


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
    kept: list[Replacement] = []
    for mark in marks:
        if not kept or mark.start >= kept[-1].end:
            kept.append(mark)
    return kept


def inline_marks(text: str) -> Sequence[Replacement]:
    """Return all that a page shows in another way and that may stand inside a number.

    These are links, tags, comments, entities, marks of emphasis in pairs, and escapes, also those of LaTeX: `1{,}500`.
    A tag that ends a line or a cell shows a line break. Raised and lowered text stays as it is, because that changes
    what a number means: `2<sup>10</sup>`; after a point or a comma it does not.
    """
    if not _MAY_BE_MARKUP.search(text):
        return ()
    kept: list[Replacement] = []
    for mark in sorted((*link_marks(text), *_html_marks(text), *_emphasis_marks(text), *_escapes(text))):
        if kept and mark.start < kept[-1].end:
            continue
        if text[mark.start] == "<":
            if _RAISED_OR_LOWERED.match(text, mark.start) and text[mark.start - 1 : mark.start] not in (".", ","):
                continue
            mark = mark._replace(shown="\n" if mark.shown else "")
        kept.append(mark)
    return kept


def _emphasis_marks(text: str) -> Iterator[Replacement]:
    """Yield the marks of emphasis in pairs: `24.**90**`; those that stand between digits twice, `2*3*4`, are signs."""
    opened: dict[str, tuple[int, int, bool]] = {}
    for match in _EMPHASIS.finditer(text):
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
            shown = match[0]
            for _ in range(_MAX_ESCAPES):
                shown = html.unescape(shown)
            if shown != match[0]:
                yield Replacement(*match.span(), shown)
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
_RAISED_OR_LOWERED = re.compile("</?(?:sup|sub)(?![A-Za-z0-9])", re.IGNORECASE)
_EMPHASIS = re.compile(r"\\.|\n[ \t]*\n|(?P<sign>(?<!\*)\*{1,3}(?!\*)|(?<!_)_{1,3}(?!_)|(?<!~)~~(?!~)|`++)", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:(?<=[0-9]\\)(?P<space>[,;: ])(?=[0-9])|(?P<sign>[!-/:-@\[-`{-~]))|(?<=[0-9])\{(?P<mark>[.,])\}(?=[0-9])"
)
"""A sign that is written with a backslash, and what LaTeX writes between the digits of one number."""
_LINE_MARK = re.compile(r"^[ \t]*(?:(?:[*•‣◦+-]|#{1,6}|[0-9]{1,3}[.)])[ \t]+|>[ \t]*)++", re.MULTILINE)
_BAR = re.compile(r"==|\|\||[ \t]?(?<!\|)\|(?!\|)[ \t]?")
"""What separates the cells of a table, and what highlights or hides words: `==word==`, `||word||`."""
