"""Highlighting of code, in weight and slant: colours here have a meaning of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from time import perf_counter

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Generic, Keyword, Literal, Name, _TokenType  # pyright: ignore[reportPrivateUsage]
from pygments.util import ClassNotFound

from vivavoce.report.html.content.blocks import Kind

LONGEST = 20_000
"""Characters of a block that is highlighted; a longer one is plain."""
PATIENCE = 0.05
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


def highlighted(code: str, language: str) -> Iterator[tuple[str, Kind]]:
    """Yield code in pieces of one kind each; in an unknown language it is one plain piece."""
    lexer = _lexer(language) if len(code) <= LONGEST else None
    if lexer is None:
        yield code, ""
        return
    end, until = 0, perf_counter() + PATIENCE
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
    found = _NAME.match(language)
    try:
        return get_lexer_by_name(found[0].lower()) if found else None
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _kind(token: _TokenType) -> Kind:
    for parent, kind in _KINDS:
        if token in parent:
            return kind
    return ""
