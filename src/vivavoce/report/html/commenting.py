"""Comments of people as a page shows them: plain text with line breaks, in which `#t3` leads to turn 3."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from vivavoce.records.label import Comment
from vivavoce.records.score import to_index
from vivavoce.safe_text import safe

_TURN = re.compile(r"(?<![\w#/])#t([1-9][0-9]{0,8})\b", re.ASCII)

Place = Callable[[int], str | None]
"""Returns the address of a turn, None if there is no such page."""


@dataclass(frozen=True, slots=True)
class CommentShown:
    """A comment; `resolved` is who resolved it, empty while it is open, `may_remove` is of the person who looks."""

    id: int
    author: str
    html: Markup
    at: float
    resolved: str
    may_remove: bool


def shown_comments(
    comments: Sequence[Comment], turns: int, place_of: Place, who: str, *, removes_all: bool
) -> dict[int | None, list[CommentShown]]:
    """Return comments by turn, oldest first; `removes_all` means that this person may remove anybody's."""
    found: dict[int | None, list[CommentShown]] = {}
    for comment in comments:
        found.setdefault(comment.turn, []).append(
            CommentShown(
                id=comment.id,
                author=safe(comment.author),
                html=comment_html(comment.text, turns, place_of),
                at=comment.created_at,
                resolved=safe(comment.resolved_by or ""),
                may_remove=removes_all or comment.author == who,
            )
        )
    return found


def comment_html(text: str, turns: int, place_of: Place) -> Markup:
    """Return a text escaped; a reference to one of the `turns`, such as `#t3`, becomes a link."""
    pieces: list[Markup] = []
    at = 0
    for found in _TURN.finditer(text):
        index = to_index(int(found[1]))
        address = place_of(index) if index < turns else None
        if address is None:
            continue
        pieces.append(escape(safe(text[at : found.start()])))
        pieces.append(Markup('<a href="{}">{}</a>').format(address, found[0]))
        at = found.end()
    return Markup("").join([*pieces, escape(safe(text[at:]))])
