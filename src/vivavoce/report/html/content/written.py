"""A text as a page shows it: Markdown, JSON, or the words as they are, with the evidence in it and what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from markupsafe import Markup

from vivavoce.report.html.content.json_tree import json_html, json_tree
from vivavoce.report.html.content.markdown import has_markup, markdown
from vivavoce.report.html.content.writing import plain, tree
from vivavoce.report.html.evidence import Mark

Sort = Literal["speech", "data"]
"""What people and models say to each other, or what goes to tools and comes back."""
Look = Literal["plain", "rich", "json"]
"""How a text is shown: as it is, with its markup, or as a tree."""

LONGEST: Mapping[Sort, int] = {"speech": 50_000, "data": 20_000}
"""Characters of a text that a page shows; the rest is one link away."""
_KEPT = 8_000
"""Characters of a text whose HTML is kept for the next reader."""


@dataclass(frozen=True, slots=True)
class Written:
    """A text on a page.

    `source` is what was written, where the page shows it otherwise; `left` are the characters that are not shown, and
    `rest` is the address of all of it.
    """

    html: Markup
    look: Look
    source: Markup | None = None
    left: int = 0
    rest: str | None = None
    cited: bool = False
    kind: Literal["written"] = "written"


def written(
    text: str, sort: Sort, marks: Sequence[Mark], *, raw: bool = False, rest: str | None = None, more: int = 0
) -> Written:
    """Return a text as a page shows it, `raw` means as it was written; marks lie within what is shown.

    `more` are the characters after this text that are not shown either.
    """
    beginning, left = text[: LONGEST[sort]], max(len(text) - LONGEST[sort], 0) + more
    html, look = (None, "plain") if raw else _looked(text, sort, marks)
    if html is None:
        return Written(plain(beginning, marks), "plain", None, left, rest, bool(marks))
    source = plain(beginning, marks, named=False)
    return Written(html, look, source, left, rest, bool(marks))


def _looked(text: str, sort: Sort, marks: Sequence[Mark]) -> tuple[Markup | None, Look]:
    """Return a text with its markup or as a tree, None if it has neither."""
    if not (text.lstrip()[:1] in ("{", "[") or (sort == "speech" and has_markup(text[: LONGEST[sort]]))):
        return None, "plain"
    if len(text) > _KEPT:
        return _html(text, sort, marks)
    return _known(text, sort, tuple(marks))


@lru_cache(maxsize=1024)
def _known(text: str, sort: Sort, marks: tuple[Mark, ...]) -> tuple[Markup | None, Look]:
    return _html(text, sort, marks)


def _html(text: str, sort: Sort, marks: Sequence[Mark]) -> tuple[Markup | None, Look]:
    found = json_tree(text, LONGEST[sort])
    if found is not None:
        return json_html(found, marks), "json"
    if sort == "data" or not has_markup(text[: LONGEST[sort]]):
        return None, "plain"
    return tree(markdown(text[: LONGEST[sort]]), marks), "rich"
