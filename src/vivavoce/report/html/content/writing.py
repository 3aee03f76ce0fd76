"""Writing HTML: trees and texts with their evidence marked. All that others wrote goes through `escape`.

The only tags are those that stand here; what others wrote is text between them, or the value of `href` after its
scheme was checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from markupsafe import Markup, escape

from vivavoce.report.html.content.blocks import (
    Block,
    Blocks,
    Break,
    Code,
    CodeBlock,
    Heading,
    Inline,
    Inlines,
    ItemList,
    Kind,
    Leaf,
    Link,
    Paragraph,
    Picture,
    Quoted,
    Rule,
    Styled,
    Table,
    leaves,
)
from vivavoce.report.html.evidence import Mark, Piece, pieces, turning

_SHOWN_ADDRESS = 60

Placed: TypeAlias = Mapping[int, Sequence[Mark]]
"""The marks of leaves by the identity of the leaf; they count from its beginning."""


def words(text: str) -> str:
    """Return a text as HTML; characters that turn the reading direction are shown by their names."""
    if text.isascii():
        return text if text.isalnum() else str(escape(text))
    return "".join(
        f'<span class="unseen">{piece}</span>' if is_name else str(escape(piece)) for piece, is_name in turning(text)
    )


def mark_pieces(cut: Iterable[Piece], *, is_target: bool = True) -> Markup:
    """Return the pieces of a text as HTML; `is_target` means that the places in it are those that links lead to."""
    return Markup("".join(_piece(piece, is_target=is_target) for piece in cut))


def plain(text: str, marks: Sequence[Mark], *, is_target: bool = True) -> Markup:
    """Return a text as it was written, with its evidence."""
    return mark_pieces(pieces(text, marks), is_target=is_target) if marks else Markup(words(text))


def tree(blocks: Blocks, marks: Sequence[Mark]) -> Markup | None:
    """Return a tree as HTML, None if a mark has no words of its own in it, because it is in what was left out."""
    placed = placed_marks(leaves(blocks), marks)
    return None if placed is None else Markup("".join(TreeWriter(placed).blocks(blocks)))


def placed_marks(leaves: Iterable[Leaf], marks: Sequence[Mark]) -> Placed | None:
    """Return the marks of each leaf by its identity, None if one has no words of its own.

    A mark on a part of words that were written otherwise lies on all of them.
    """
    placed: dict[int, list[Mark]] = {}
    if not marks:
        return placed
    last: dict[int, tuple[int, int]] = {}
    for leaf in leaves:
        on = [(number, mark) for number, mark in enumerate(marks) if mark.start < leaf.end and mark.end > leaf.start]
        if not on or leaf.text == "\n":
            continue
        if len(on) > 1 and not leaf.verbatim:
            return None
        for place, (number, _) in enumerate(on):
            if not leaf.text.isspace():
                last[number] = id(leaf), place
        placed[id(leaf)] = [_on(leaf, mark) for _, mark in on]
    for number, mark in enumerate(marks):
        if number not in last:
            return None
        leaf_id, place = last[number]
        placed[leaf_id][place] = replace(placed[leaf_id][place], last=mark.last)
    return placed


def _on(leaf: Leaf, mark: Mark) -> Mark:
    if not leaf.verbatim:
        return Mark(0, len(leaf.text), mark.cite, last=False)
    return Mark(max(mark.start, leaf.start) - leaf.start, min(mark.end, leaf.end) - leaf.start, mark.cite, last=False)


def _piece(piece: Piece, *, is_target: bool = True, linked: bool = True) -> str:
    """Return a piece; within a link it is marked without a link of its own, and so is white space."""
    if piece.cite is None:
        return words(piece.text)
    last = is_target and piece.last
    place = f' id="{escape(piece.cite.anchor)}"' if last else ""
    letter = f'<sup data-letter="{escape(piece.cite.letter)}"></sup>' if piece.last else ""
    way = f'<a href="#{escape(piece.cite.note)}">', "</a>"
    opening, closing = way if linked and not piece.text.isspace() else ("<span>", "</span>")
    return f'<mark class="ev {piece.cite.ink}"{place}>{opening}{words(piece.text)}{letter}{closing}</mark>'


@dataclass(frozen=True, slots=True)
class TreeWriter:
    """Writes blocks and their leaves, with the marks of each leaf."""

    placed: Placed

    def blocks(self, blocks: Blocks, way: str = ' dir="auto"') -> Iterator[str]:
        """Yield blocks as HTML; those within others have no reading direction of their own, or they give none."""
        for block in blocks:
            yield from self._block(block, way)

    def leaf(self, leaf: Leaf, *, linked: bool = True) -> str:
        """Return a leaf."""
        marks = self.placed.get(id(leaf))
        if marks is None:
            return words(leaf.text)
        return "".join(_piece(piece, linked=linked) for piece in pieces(leaf.text, marks))

    def code(self, cut: Iterable[tuple[Leaf, Kind]]) -> Iterator[str]:
        """Yield pieces of code, each in the class of its kind."""
        for leaf, kind in cut:
            html = self.leaf(leaf)
            yield f'<span class="c-{kind}">{html}</span>' if kind else html

    def _block(self, block: Block, way: str) -> Iterator[str]:
        match block:
            case Paragraph():
                tag = "div" if block.tight else "p"
                yield f"<{tag}{way}>{self._inlines(block.inside)}</{tag}>"
            case Heading():
                yield f'<p class="h h{block.level}"{way}>{self._inlines(block.inside)}</p>'
            case Quoted():
                yield from (f"<blockquote{way}>", *self.blocks(block.blocks, ""), "</blockquote>")
            case ItemList():
                yield from self._list(block, way)
            case CodeBlock():
                called = "" if block.language is None else f"<figcaption>{self.leaf(block.language)}</figcaption>"
                code = "".join(self.code(block.pieces))
                yield f'<figure class="code">{called}<pre dir="ltr" tabindex="0"><code>{code}</code></pre></figure>'
            case Table():
                yield from self._table(block, way)
            case Rule():
                yield "<hr>"

    def _list(self, block: ItemList, way: str) -> Iterator[str]:
        first = "" if block.first in (None, 1) else f' start="{block.first}"'
        tag = "ul" if block.first is None else "ol"
        yield f"<{tag}{way}{first}>"
        for item in block.items:
            yield from ("<li>", *self.blocks(item, ""), "</li>")
        yield f"</{tag}>"

    def _table(self, block: Table, way: str) -> Iterator[str]:
        sides = [f' class="to-{side}"' if side in ("center", "right") else "" for side in block.align]
        yield f'<div class="scroll" tabindex="0" role="group" aria-label="Table"><table{way}><thead><tr>'
        for cell, side in zip(block.head, sides, strict=False):
            inside = self._inlines(cell)
            yield f'<th scope="col"{side}>{inside}</th>' if inside else f"<td{side}></td>"
        yield "</tr></thead><tbody>"
        for row in block.rows:
            cells = (f"<td{side}>{self._inlines(cell)}</td>" for cell, side in zip(row, sides, strict=False))
            yield from ("<tr>", *cells, "</tr>")
        yield "</tbody></table></div>"

    def _inlines(self, inlines: Inlines, *, linked: bool = True) -> str:
        return "".join(self._inline(inline, linked=linked) for inline in inlines)

    def _inline(self, node: Inline, *, linked: bool) -> str:
        match node:
            case Leaf():
                return self.leaf(node, linked=linked)
            case Break():
                return "<br>"
            case Code():
                return f'<code dir="ltr">{self.leaf(node.leaf, linked=linked)}</code>'
            case Styled():
                return f"<{node.style}>{self._inlines(node.inside, linked=linked)}</{node.style}>"
            case Picture():
                return f'<span class="picture">{self.leaf(node.leaf, linked=linked)}</span>{self._leads(node.address)}'
            case Link():
                inside = self._inlines(node.inside, linked=False) or escape(node.address)
                rel = 'rel="noopener noreferrer nofollow"'
                link = f'<a class="out" href="{escape(node.address)}" {rel}>{inside}</a>' if linked else inside
                return link + ("" if node.leads is None else self._leads(node.leads.text, node.leads))

    def _leads(self, address: str, leaf: Leaf | None = None) -> str:
        """Return where a link leads, in short; all of the address is its title."""
        host = _in_short(address)
        marks = None if leaf is None else self.placed.get(id(leaf))
        label = words(host) if marks is None else _piece(Piece(host, marks[0].cite, marks[0].last))
        return f' <span class="leads" dir="ltr" title="{escape(address)}">({label})</span>'


def _in_short(address: str) -> str:
    """Return an address without what all have in common, cut in the middle of its path if it is long."""
    short = address.partition("://")[2] or address.removeprefix("mailto:")
    return short if len(short) <= _SHOWN_ADDRESS else f"{short[: _SHOWN_ADDRESS - 20]}…{short[-19:]}"
