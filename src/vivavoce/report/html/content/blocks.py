"""The tree of a text that was written with markup: blocks, and the inline pieces in them.

Every leaf says where it is in the text as it was written, so that words that are cited there can be marked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, TypeAlias

from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.token import Token

Kind = Literal["", "k", "s", "c", "n", "d", "i"]
"""What a piece of code is: a keyword, a value, a comment, a name that is defined, a deletion, an insertion."""

Align = Literal["", "left", "center", "right"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Words, and where they are in the text as it was written.

    `verbatim` means that they stand there as they are here, letter for letter, and not as an escape or an entity.
    """

    text: str
    start: int
    end: int
    verbatim: bool = True


@dataclass(frozen=True, slots=True)
class Break:
    """The end of a line within a paragraph."""


@dataclass(frozen=True, slots=True)
class Code:
    """Code within a line."""

    leaf: Leaf


@dataclass(frozen=True, slots=True)
class Styled:
    """Emphasised, strong or struck words."""

    style: Literal["em", "strong", "s"]
    inside: Inlines


@dataclass(frozen=True, slots=True)
class Link:
    """A link to an address that was allowed; `leads` says where it leads, unless its words do."""

    address: str
    inside: Inlines
    leads: Leaf | None


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that the text only names: it is never loaded."""

    words: str
    address: str
    leaf: Leaf


Inline: TypeAlias = Leaf | Break | Code | Styled | Link | Picture
Inlines: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `tight` means that it is in a list without space around it."""

    inside: Inlines
    tight: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6, which is not a heading of the page."""

    level: int
    inside: Inlines


@dataclass(frozen=True, slots=True)
class Quoted:
    """Blocks that are quoted."""

    blocks: Blocks


@dataclass(frozen=True, slots=True)
class ItemList:
    """A list; `first` is the number of its first item, None if it has no numbers."""

    items: tuple[Blocks, ...]
    first: int | None


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Code, cut into pieces of one kind each; `language` is what the writer called it."""

    pieces: tuple[tuple[Leaf, Kind], ...]
    language: Leaf | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with one row of heads."""

    head: tuple[Inlines, ...]
    rows: tuple[tuple[Inlines, ...], ...]
    align: tuple[Align, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


Block: TypeAlias = Paragraph | Heading | Quoted | ItemList | CodeBlock | Table | Rule
Blocks: TypeAlias = tuple[Block, ...]


def leaves(blocks: Blocks) -> Iterator[Leaf]:
    """Yield the leaves of blocks, in order."""
    for block in blocks:
        match block:
            case Paragraph() | Heading():
                yield from _inline_leaves(block.inside)
            case Quoted():
                yield from leaves(block.blocks)
            case ItemList():
                for item in block.items:
                    yield from leaves(item)
            case CodeBlock():
                yield from () if block.language is None else (block.language,)
                yield from (leaf for leaf, _ in block.pieces)
            case Table():
                for cell in chain(block.head, *block.rows):
                    yield from _inline_leaves(cell)
            case Rule():
                pass


def _inline_leaves(inlines: Inlines) -> Iterator[Leaf]:
    for inline in inlines:
        match inline:
            case Leaf():
                yield inline
            case Code() | Picture():
                yield inline.leaf
            case Styled():
                yield from _inline_leaves(inline.inside)
            case Link():
                yield from _inline_leaves(inline.inside)
                yield from () if inline.leads is None else (inline.leads,)
            case Break():
                pass


MAX_DEPTH = 30
"""Styles within styles; those that are deeper are not shown."""

_STYLES: Mapping[str, Literal["em", "strong", "s"]] = {"em": "em", "strong": "strong", "s": "s"}


@dataclass(slots=True)
class Reader:
    """Follows the tokens of one piece of inline markup through its text.

    `at` returns where a character was written; without it, all words have the place `whole`.
    """

    text: str
    at: Callable[[int], int] | None
    whole: tuple[int, int]
    _cursor: int = 0
    _lost: bool = False
    _open: list[list[Inline]] = field(default_factory=list[list[Inline]])

    def read(self, tokens: Sequence[Token]) -> Inlines:
        """Return the pieces of the tokens."""
        self._open = [[]]
        links: list[str] = []
        for token in tokens:
            kind, way = token.type.rpartition("_")[::2]
            if way == "open":
                self._pass(token.markup if kind in _STYLES else "<" if token.markup else "[")
                links += [str(token.attrGet("href") or "")] if kind == "link" else []
                self._open.append([])
            elif way == "close":
                self._close(kind, token, links)
            else:
                self._read_token(token)
        return tuple(self._open[0])

    def _close(self, kind: str, token: Token, links: list[str]) -> None:
        inside = tuple(self._open.pop())
        style = _STYLES.get(kind)
        if style is None:
            self._open[-1].append(self._link(links.pop(), inside, token))
            return
        self._pass(token.markup)
        self._open[-1] += inside if len(self._open) > MAX_DEPTH else [Styled(style, inside)]

    def _read_token(self, token: Token) -> None:
        match token.type:
            case "softbreak" | "hardbreak":
                self._to_next_line()
                self._open[-1].append(Break())
            case "code_inline":
                self._open[-1].append(Code(self._code(token)))
            case "image":
                self._open[-1].append(self._picture(token))
            case _:
                if token.content:
                    self._open[-1].append(self._words(token.content, token.markup or token.content))

    def _words(self, text: str, source: str) -> Leaf:
        """Return words that are written here; an escape or an entity is written otherwise than it is shown."""
        start = self._cursor
        self._pass(source)
        return self._leaf(text, start)

    def _leaf(self, text: str, start: int) -> Leaf:
        if self.at is None:
            return Leaf(text, *self.whole, verbatim=False)
        if self._lost or start >= self._cursor:
            return Leaf(text, self.at(min(start, len(self.text))), self.whole[1], verbatim=False)
        first, end = self.at(start), self.at(self._cursor - 1) + 1
        return Leaf(text, first, end, end - first == len(text) and self.text.startswith(text, start))

    def _pass(self, source: str) -> None:
        """Go on behind a piece of the text; from where the text says something else, no place is known."""
        if not self._lost and self.text.startswith(source, self._cursor):
            self._cursor += len(source)
        else:
            self._lost = True

    def _to_next_line(self) -> None:
        newline = self.text.find("\n", self._cursor)
        if newline < 0 or self.text[self._cursor : newline].strip(" \\"):
            self._lost = True
        else:
            rest = self.text[newline + 1 :]
            self._cursor = newline + 1 + len(rest) - len(rest.lstrip(" \t")) if rest[:1] in (" ", "\t") else newline + 1

    def _code(self, token: Token) -> Leaf:
        start = self._cursor
        self._pass(token.markup)
        end = self.text.find(token.markup, self._cursor + max(len(token.content), 1))
        inside = self.text[self._cursor : end]
        if self._lost or end < 0 or token.content.strip() != inside.replace("\n", " ").strip():
            self._lost = True
            return self._leaf(token.content, start)
        first = self._cursor + (1 if len(inside) == len(token.content) + 2 else 0)
        self._cursor = first + len(token.content)
        leaf = self._leaf(token.content, first)
        self._cursor = end + len(token.markup)
        return leaf

    def _link(self, address: str, inside: Inlines, token: Token) -> Link:
        start = self._cursor
        self._pass(">" if token.markup else "]")
        if not token.markup:
            self._pass_address()
        words = "".join(leaf.text for leaf in inside if isinstance(leaf, Leaf))
        leads = None if words in (address, address.removeprefix("mailto:")) else self._leaf(address, start)
        return Link(address, inside, leads)

    def _picture(self, token: Token) -> Picture:
        start = self._cursor
        self._pass(f"![{token.content}]")
        self._pass_address()
        words = "".join(child.content for child in token.children or ()) or "image"
        return Picture(words, str(token.attrGet("src") or ""), self._leaf(words, start))

    def _pass_address(self) -> None:
        """Go on behind the address after the words of a link: in brackets, by its name, or none."""
        text, end = self.text, len(self.text)
        if text.startswith("[", self._cursor):
            close = text.find("]", self._cursor)
            self._cursor = close + 1 if close >= 0 else self._cursor
        elif text.startswith("(", self._cursor):
            place = _blank(text, self._cursor + 1)
            destination = parseLinkDestination(text, place, end)
            after = _blank(text, destination.pos if destination.ok else place)
            title = parseLinkTitle(text, after, end)
            close = _blank(text, title.pos if title.ok else after)
            if text.startswith(")", close):
                self._cursor = close + 1
            else:
                self._lost = True


def _blank(text: str, place: int) -> int:
    """Return where the white space that begins at a place ends."""
    while place < len(text) and text[place] in " \t\n":
        place += 1
    return place
