"""Markdown as a tree of blocks: CommonMark with tables and struck words, and no HTML.

Only the tree leaves this file. What a text holds besides, HTML above all, is words in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from time import perf_counter
from typing import TypeAlias, cast
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Generic, Keyword, Literal, Name, _TokenType  # pyright: ignore[reportPrivateUsage]
from pygments.util import ClassNotFound

from vivavoce.report.html.content.blocks import (
    Align,
    Block,
    Blocks,
    CodeBlock,
    Heading,
    Inlines,
    ItemList,
    Kind,
    Leaf,
    Paragraph,
    Quoted,
    Reader,
    Rule,
    Table,
)

MAX_CHARS = 20_000
"""Characters of a block that is highlighted; a longer one is plain."""
MAX_SECONDS = 0.05
"""Seconds after which the rest of a block is plain."""

_NAME = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")
_KINDS: tuple[tuple[_TokenType, Kind], ...] = (
    (Comment, "c"),
    (Keyword, "k"),
    (Name.Function, "n"),
    (Name.Class, "n"),
    (Name.Tag, "k"),
    (Literal, "s"),
    (Generic.Deleted, "d"),
    (Generic.Inserted, "i"),
    (Generic.Heading, "k"),
    (Generic.Subheading, "k"),
)


def highlight(code: str, language: str) -> Iterator[tuple[str, Kind]]:
    """Yield code in pieces of one kind each; in an unknown language it is one plain piece."""
    lexer = _lexer(language) if len(code) <= MAX_CHARS else None
    if lexer is None:
        yield code, ""
        return
    end, until = 0, perf_counter() + MAX_SECONDS
    for start, token, text in lexer.get_tokens_unprocessed(code):
        if start != end:  # an embedded language may come out of order
            break
        yield text, _kind(token)
        end = start + len(text)
        if perf_counter() > until:
            break
    if end < len(code):
        yield code[end:], ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    """Return the lexer of a language by the first word of what a writer calls it; none is ever guessed."""
    match = _NAME.match(language)
    try:
        return get_lexer_by_name(match[0].lower()) if match else None
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _kind(token: _TokenType) -> Kind:
    for parent, kind in _KINDS:
        if token in parent:
            return kind
    return ""


SCHEMES = frozenset(("http", "https", "mailto"))
"""Where a link may lead."""
MAX_DEPTH = 20
"""Blocks within blocks; what is deeper stays as it was written."""

_MARKUP = re.compile(
    r"[*`]|~~|\]\(|\]\[|\]:|<[a-zA-Z][\w.+-]*+[:@]|\\[!-/:-@\[-`{-~]|&#?\w++;|\b_|_\b"
    r"|^[ \t]*+(?:\#{1,6}(?:[ \t]|$)|>|[-+](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|[-_=|:][-_=|: \t]*+$)"
    r"|^(?:[ ]{4}|[ ]{0,3}\t)",
    re.MULTILINE,
)


def has_markup(text: str) -> bool:
    """Return whether a text may have markup; most of what people say has none."""
    return _MARKUP.search(text) is not None


def markdown(text: str) -> Blocks:
    """Return the tree of a text."""
    tokens = _parser().parse(text)
    return _Builder(_Lines(text)).blocks(iter(tokens))


def is_allowed(url: str) -> bool:
    """Return whether a link may lead to an address: one of a known scheme that names a host or a mailbox."""
    try:
        parts = urlsplit(url)
        return parts.scheme.lower() in SCHEMES and bool(parts.netloc or (parts.scheme == "mailto" and parts.path))
    except ValueError:
        return False


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_DEPTH}).enable(["table", "strikethrough"])
    parser.disable(["text_join", "html_block", "html_inline"])  # an escape has a token of its own
    parser.validateLink = is_allowed
    return parser


_Place: TypeAlias = int | None
"""Where something was written, None if that is not known."""


class _Lines:
    """The lines of a text, and where the content of each began before the parser took the marks from it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line(self, number: int) -> tuple[int, str]:
        """Return where a line begins, and its text."""
        if number >= len(self._starts):
            return len(self.text), ""
        start = self._starts[number]
        end = self._starts[number + 1] - 1 if number + 1 < len(self._starts) else len(self.text)
        return start, self.text[start:end]

    def whole(self, first: int, count: int = 1) -> tuple[int, int]:
        """Return where lines begin and end."""
        start, line = self.line(first + count - 1)
        return self.line(first)[0], start + len(line)

    def ending(self, content: str, number: int) -> _Place:
        """Return where a content begins that ends its line."""
        start, line = self.line(number)
        for text in (line, line.rstrip()):
            if text.endswith(content):
                return start + len(text) - len(content)
        return None

    def within(self, content: str, number: int, after: int) -> _Place:
        """Return where a content is within its line, after a place."""
        start, line = self.line(number)
        offset = line.find(content, max(after - start, 0))
        return None if offset < 0 else start + offset

    def leaf(self, content: str, number: int, place: _Place) -> Leaf:
        """Return a content of a line as a leaf; without a place it has that of the line."""
        if place is None:
            return Leaf(content, *self.whole(number), verbatim=False)
        return Leaf(content, place, place + len(content))


@dataclass(slots=True)
class _Builder:
    lines: _Lines
    _cell: int = 0

    def blocks(self, tokens: Iterator[Token], until: str = "") -> Blocks:
        """Return the blocks up to a closing token."""
        blocks: list[Block] = []
        for token in tokens:
            if token.type == until:
                break
            if (block := self._block(token, tokens)) is not None:
                blocks.append(block)
        return tuple(blocks)

    def _block(self, token: Token, tokens: Iterator[Token]) -> Block | None:
        match token.type:
            case "paragraph_open":
                return Paragraph(self._paragraph(next(tokens)), token.hidden)
            case "heading_open":
                return Heading(int(token.tag[1]), self._heading(token, next(tokens)))
            case "blockquote_open":
                return Quoted(self.blocks(tokens, "blockquote_close"))
            case "bullet_list_open" | "ordered_list_open":
                return self._list(token, tokens)
            case "fence" | "code_block":
                return self._code(token)
            case "table_open":
                return self._table(tokens)
            case "hr":
                return Rule()
            case _:
                return None

    def _paragraph(self, token: Token) -> Inlines:
        first = _line_of(token)
        contents = token.content.split("\n")
        places = [self.lines.ending(content, first + number) for number, content in enumerate(contents)]
        return _inline(token, contents, places, self.lines.whole(first, len(contents)))

    def _heading(self, opening: Token, token: Token) -> Inlines:
        if not opening.markup.startswith("#"):
            return self._paragraph(token)
        number = _line_of(token)
        start, line = self.lines.line(number)
        after = start + line.find(opening.markup) + len(opening.markup)
        place = self.lines.within(token.content, number, after)
        return _inline(token, [token.content], [place], self.lines.whole(number))

    def _list(self, token: Token, tokens: Iterator[Token]) -> ItemList:
        closing = token.type.replace("open", "close")
        items: list[Blocks] = []
        for next_token in tokens:
            if next_token.type == closing:
                break
            items.append(self.blocks(tokens, "list_item_close"))
        first = int(token.attrGet("start") or 1) if token.type == "ordered_list_open" else None
        return ItemList(tuple(items), first)

    def _code(self, token: Token) -> CodeBlock:
        first = _line_of(token) + (token.type == "fence")
        code, language = token.content.removesuffix("\n"), token.info.strip()
        places = [self.lines.ending(line, first + at) for at, line in enumerate(code.split("\n"))]
        called = self.lines.within(language, first - 1, 0)
        return CodeBlock(
            tuple(self._code_pieces(code, language, first, places)),
            self.lines.leaf(language, first - 1, called) if language else None,
        )

    def _code_pieces(
        self, code: str, language: str, first: int, places: Sequence[_Place]
    ) -> Iterator[tuple[Leaf, Kind]]:
        """Yield the pieces of code; none goes over the end of a line, because the next one may be written anywhere."""
        line = column = 0
        for text, kind in highlight(code, language):
            for at, words in enumerate(text.split("\n")):
                place = places[line]
                if at:
                    yield Leaf("\n", *self.lines.whole(first + line), verbatim=False), ""
                    line, column = line + 1, 0
                    place = places[line]
                if words:
                    yield self.lines.leaf(words, first + line, None if place is None else place + column), kind
                    column += len(words)

    def _table(self, tokens: Iterator[Token]) -> Table:
        rows: list[tuple[Inlines, ...]] = []
        align: list[Align] = []
        cells: list[Inlines] = []
        for token in tokens:
            match token.type:
                case "table_close":
                    break
                case "tr_open":
                    cells = []
                    self._cell = self.lines.line(_line_of(token))[0]
                case "tr_close":
                    rows.append(tuple(cells))
                case "th_open":
                    align.append(_align(token))
                case "inline":
                    cells.append(self._cell_of(token))
                case _:
                    pass
        return Table(rows[0] if rows else (), tuple(rows[1:]), tuple(align))

    def _cell_of(self, token: Token) -> Inlines:
        number = _line_of(token)
        place = self.lines.within(token.content, number, self._cell)
        if place is None:  # it has an escaped bar
            place_of_bar = self.lines.within(token.content.replace("|", "\\|"), number, self._cell)
            self._cell = (place_of_bar or self._cell) + len(token.content)
        else:
            self._cell = place + len(token.content)
        return _inline(token, [token.content], [place], self.lines.whole(number))


def _line_of(token: Token) -> int:
    return (token.map or [0])[0]


def _inline(token: Token, contents: Sequence[str], places: Sequence[_Place], whole: tuple[int, int]) -> Inlines:
    """Return the pieces of a token whose lines were written at places, all of them within the place `whole`."""
    at = _at(contents, [place for place in places if place is not None]) if None not in places else None
    return Reader(token.content, at, whole).read(token.children or ())


def _at(contents: Sequence[str], places: Sequence[int]) -> Callable[[int], int]:
    begins = [0]
    for content in contents[:-1]:
        begins.append(begins[-1] + len(content) + 1)

    def at(offset: int) -> int:
        number = bisect_right(begins, offset) - 1
        return places[number] + offset - begins[number]

    return at


def _align(token: Token) -> Align:
    _, _, side = str(token.attrGet("style") or "").partition(":")
    return cast("Align", side) if side in ("left", "center", "right") else ""
