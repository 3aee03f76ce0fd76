"""`viva runs`: the list of stored runs; and `viva runs note`: their titles, notes, and tags."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, confirm, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.records.label import remarks_of
from vivavoce.records.run import Grading, Run
from vivavoce.report.text import Column, FittingTable, count, strict_json
from vivavoce.report.verdict import listed_finding, net_text
from vivavoce.safe_text import safe
from vivavoce.settings import user_name
from vivavoce.store.browse.listing import RunEntry
from vivavoce.store.database.database import UnreadableRow
from vivavoce.store.store import Store

COLUMNS = (
    Column("run"),
    Column("started", rank=3),
    Column("status", rank=2),
    Column("verdict"),
    Column("conversations", "right", rank=4),
    Column("finding", flows=True),
)


def command(
    what: Annotated[Literal["list", "delete"], typer.Argument(help="The action.")] = "list",
    run: Annotated[
        str | None,
        typer.Argument(help="delete: the run: its id, or the beginning or end of its id.", show_default=False),
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="delete: do not ask for confirmation.")] = False,
    store: StoreOption = None,
) -> None:
    """List the stored runs, newest first, or delete one.

    Each has its verdict and the reason in one sentence, as on the pages. A run whose process ended early is
    interrupted; continue it with viva run --resume RUN. delete asks first, and then permanently deletes a run with its
    conversations, scores, labels and comments.
    """
    if (what == "delete") is (run is None):
        raise UsageError("name one run: viva runs delete RUN" if run is None else "viva runs list takes no run")
    if run is not None:
        _delete(store_of(store), run, yes=yes)
        return
    if yes:
        raise UsageError("--yes is for viva runs delete")
    with Store.open(store_of(store), create=False) as opened:
        found = opened.runs(limit)
        entries = {one.id: one for one in opened.browse.runs(limit=limit).runs}
        graded = [(record, _newest_grading(opened, record)) for record in found]
    if as_json:
        for record, grading in graded:
            print_json(strict_json(_data(record, grading, entries.pop(record.id, None))))
        for unreadable in entries.values():
            print_json(strict_json(unreadable.model_dump(exclude_none=True)))
    else:
        out().print(FittingTable(COLUMNS, [[*map(Text, _cells(one))] for one in entries.values()]))


def _newest_grading(store: Store, record: Run) -> Grading | None:
    """Return the newest scores of a run, None where there are none, or none that can be read."""
    with suppress(UnreadableRow):
        return store.grading(record.id) if store.gradings(record.id) else None
    return None


def _delete(place: str, name: str, *, yes: bool) -> None:
    with Store.open(place, create=False) as opened:
        run = opened.run(name)
        stored = opened.counts(run.id)[0]
        about = f"{run.status}, suite {safe(run.suite)}, {count(stored, 'conversation')}"
        confirm(f"Delete {run.id} ({about}) for good?", yes=yes)
        opened.maintenance.delete_run(run.id, user_name())
    notes().print(f"deleted {run.id}", soft_wrap=True)


def _data(run: Run, grading: Grading | None, entry: RunEntry | None) -> dict[str, object]:
    """Return a run with the figures of its newest scores."""
    summary = (grading and grading.summary) or {}
    numbers = {name: summary.get(name) for name in ("attempts", "failed_attempts", "graders")}
    verdict = {"grading": grading and grading.id, "verdict": grading and grading.verdict}
    said = {"finding": None if entry is None else listed_finding(entry), "comments": entry.comments if entry else 0}
    return {**run.model_dump(exclude={"spec"}), **verdict, **said, **numbers}


def _cells(entry: RunEntry) -> list[str]:
    status = entry.status if entry.partial_of is None else f"{entry.status}, partial"
    started = datetime.fromtimestamp(entry.started_at).strftime("%Y-%m-%d %H:%M")
    known = [safe(one) for one in (entry.title, ", ".join(entry.tags)) if one]
    head = entry.headline
    net = f"{safe(head.name)}: {net_text(head)}" if head is not None and head.tester_errors else ""
    known += [one for one in (listed_finding(entry), net, entry.comments and count(entry.comments, "comment")) if one]
    said = "\n".join(known)
    if entry.summary is None:
        return [entry.id, started, status, "–", "", said]
    return [entry.id, started, status, entry.verdict or "no gate", str(entry.attempts), said]


def note(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")],
    text: Annotated[str | None, typer.Argument(help="The new notes, which replace the old; '' removes them.")] = None,
    *,
    title: Annotated[str | None, typer.Option(help="The new title; '' removes it.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag; repeat for more.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Remove this tag; repeat for more.")] = None,
    store: StoreOption = None,
) -> None:
    """Give a run a title, notes and tags, or print them.

    Scores do not change, and the audit log says who wrote them. Pages, lists, exports and comparisons show them.
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
