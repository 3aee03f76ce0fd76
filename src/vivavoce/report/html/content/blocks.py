"""The tree of a text that was written with markup: blocks, and the inline pieces in them.

Every leaf says where it stands in the text as it was written, so that words that are cited there can be marked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

Kind = Literal["", "k", "s", "c", "n", "d", "i"]
"""What a piece of code is: a keyword, a value, a comment, a name that is defined, a deletion, an insertion."""

Align = Literal["", "left", "center", "right"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Words, and where they stand in the text as it was written.

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
    """A paragraph; `tight` means that it stands in a list without space around it."""

    inside: Inlines
    tight: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6, which is no heading of the page."""

    level: int
    inside: Inlines


@dataclass(frozen=True, slots=True)
class Quoted:
    """Blocks that are quoted."""

    blocks: Blocks


@dataclass(frozen=True, slots=True)
class Listed:
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


Block: TypeAlias = Paragraph | Heading | Quoted | Listed | CodeBlock | Table | Rule
Blocks: TypeAlias = tuple[Block, ...]


def leaves(blocks: Blocks) -> Iterator[Leaf]:
    """Yield the leaves of blocks, in order."""
    for block in blocks:
        match block:
            case Paragraph() | Heading():
                yield from _inline_leaves(block.inside)
            case Quoted():
                yield from leaves(block.blocks)
            case Listed():
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
    for one in inlines:
        match one:
            case Leaf():
                yield one
            case Code() | Picture():
                yield one.leaf
            case Styled():
                yield from _inline_leaves(one.inside)
            case Link():
                yield from _inline_leaves(one.inside)
                yield from () if one.leads is None else (one.leads,)
            case Break():
                pass
