"""The groups of the conversations that the page of a run lists."""

from __future__ import annotations

from typing import get_args

from vivavoce.errors import UsageError
from vivavoce.extensions import PagePart
from vivavoce.features.groups.counting import Common
from vivavoce.features.groups.fields import fields_known
from vivavoce.features.groups.report import HEADS, cells, group_conversations
from vivavoce.safe_text import safe
from vivavoce.server.pages.run import RunView
from vivavoce.store.browse.filter import quoted

GROUP = "group"
"""The parameter of the address that says by what conversations are grouped."""


def groups_of_list(view: RunView, readable: bool) -> list[PagePart]:
    """Return links to group the listed conversations, and their groups where the address asks for them."""
    by = view.listing.of_plugins.get(GROUP)
    fields = [*get_args(Common), *fields_known(view.store, view.run.id)]
    links = [(name, view.link(group=None if name == by else name)) for name in fields]
    values: dict[str, object] = {"by": by, "links": links, "shown": False, "problem": None}
    if by is None or not readable:
        return [PagePart("groups.html", values)]
    try:
        return [PagePart("groups.html", values | _table(view, by))]
    except UsageError as error:
        return [PagePart("groups.html", values | {"shown": True, "problem": safe(str(error))}, 422)]


def _table(view: RunView, by: str) -> dict[str, object]:
    """Return the groups of the listed conversations, each with the filter that lets only them through."""
    text = view.listing.filter_text
    result = group_conversations(view.store, view.grading, by, text)

    def link(name: str) -> str | None:
        if by not in get_args(Common):
            return None
        term = f"trial:{name}" if by == "trial" else f"{by}:{quoted(name)}"
        return view.link(filter=f"{text} {term}".strip(), group=None)

    rows = [(group, link(group.name), cells(group)) for group in result.groups]
    return {"shown": True, "rows": rows, "heads": HEADS, "finding": result.finding}
