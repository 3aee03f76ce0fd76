"""`viva runs note`: give a run a title, notes and tags."""

from __future__ import annotations

from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, out, store_of
from vivavoce.records.label import remarks_of
from vivavoce.records.run import Run
from vivavoce.safe_text import safe
from vivavoce.settings import user_name
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")],
    text: Annotated[str | None, typer.Argument(help="The new notes, which replace the old; '' removes them.")] = None,
    *,
    title: Annotated[str | None, typer.Option(help="The new title; '' removes it.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag; repeat for more.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Remove this tag; repeat for more.")] = None,
    store: StoreOption = None,
) -> None:
    """Give a run a title, notes and tags, or print them.

    They change no score, and the audit log says who wrote them. Pages, lists, exports and comparisons show them.
    """
    with Store.open(store_of(store), create=False) as opened:
        found = opened.run(run)
        given: dict[str, object] = {"title": title, "notes": text}
        if tag or untag:
            given["tags"] = [one for one in (*found.tags, *(tag or ())) if one not in (untag or ())]
        given = {name: value for name, value in given.items() if value is not None}
        if given:
            found = opened.remark(found.id, remarks_of(given), user_name())
    for line in remark_lines(found):
        out().print(line, soft_wrap=True, markup=False, highlight=False)


def remark_lines(run: Run) -> list[str]:
    """Return what people say of a run, in lines; its id where they say nothing."""
    lines = [f"{run.id}: {run.title}" if run.title else run.id]
    lines += [f"tags: {', '.join(run.tags)}"] if run.tags else []
    lines += run.notes.splitlines() if run.notes else []
    return list(map(safe, lines))
