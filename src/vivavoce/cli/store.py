"""`viva store`: what is in a store, bringing it up to date, letting go of what is old, and copying it elsewhere."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from typing import Annotated, Literal

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.report.strict_json import strict_json
from vivavoce.report.text import count
from vivavoce.settings import user_name
from vivavoce.store.database.address import Place
from vivavoce.store.store import Store

SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def command(
    what: Annotated[
        Literal["info", "migrate", "gc", "copy", "audit"], typer.Argument(help="What to do with the store.")
    ] = "info",
    source: Annotated[str | None, typer.Argument(metavar="FROM", help="The store to copy.", show_default=False)] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="TO", help="The store to copy it to.", show_default=False)
    ] = None,
    *,
    keep_last: Annotated[int | None, typer.Option(min=0, help="gc: keep the newest finished runs, this many.")] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="gc: delete only runs that ended this long ago: 12h, 30d or 8w.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="gc: say what would be deleted, and delete nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print info, or audit, as JSON, one object a line.")] = False,
    store: StoreOption = None,
) -> None:
    """Show what is in a store, bring it to the newest schema, delete old runs, copy it, or show who changed what.

    A store is a file, or a database: postgresql://user@host/database. gc deletes finished runs with everything that
    belongs to them, and the replies of models that are older than every run that is left; a run that may be resumed,
    or is worked on, stays. copy leaves the store it reads as it is, and adds to the other what that lacks; a copy that
    was stopped is completed by the same command. audit lists labels, deletions and tokens, the newest first.
    """
    if what != "copy" and source is not None:
        raise UsageError(f"viva store {what} takes no store as an argument; name it with --store {Place(source)}")
    if what != "gc" and (keep_last is not None or older_than is not None or dry_run):
        raise UsageError(f"--keep-last, --older-than and --dry-run are for viva store gc, not for {what}")
    if what == "copy":
        _copy(source, target)
    elif what == "gc":
        _collect(store_of(store), keep_last, older_than, dry_run)
    elif what == "audit":
        _audit(store_of(store), as_json)
    else:
        _show(store_of(store), as_json)


def _show(place: str, as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        found = opened.maintenance.contents()
    if as_json:
        print_json(strict_json(asdict(found)))
        return
    lines = {"place": found.place, "schema": found.schema, "size": f"{found.bytes / 1e6:,.1f} MB"}
    for name, text in {**lines, **{name: f"{number:,}" for name, number in found.rows.items()}}.items():
        out().print(f"{name:<9}  {text}", soft_wrap=True)


def _collect(place: str, keep_last: int | None, older_than: str | None, dry_run: bool) -> None:
    if keep_last is None and older_than is None:
        raise UsageError("say what may go: --keep-last 20, --older-than 30d, or both")
    before = None if older_than is None else time.time() - seconds_of(older_than, "--older-than")
    with Store.open(place, create=False) as opened:
        gone = opened.maintenance.collect(keep_last=keep_last, before=before, dry_run=dry_run, actor=user_name())
    for run_id in gone.runs:
        out().print(run_id, soft_wrap=True)
    verb = "would delete" if dry_run else "deleted"
    notes().print(f"{verb} {count(len(gone.runs), 'run')} and {gone.replies:,} of the kept replies", soft_wrap=True)


def _audit(place: str, as_json: bool) -> None:
    with Store.open(place, create=False) as opened:
        after: str | None = None
        while True:
            page = opened.audit.entries(after, 500)
            for one in page.entries:
                at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.at))
                detail = "" if one.detail is None else strict_json(one.detail)
                line = "  ".join((at, one.actor, one.action, one.subject, detail))
                if as_json:
                    print_json(strict_json(one.model_dump()))
                else:
                    out().print(line.rstrip(), soft_wrap=True)
            if not page.entries:
                notes().print("nothing has been noted yet: no label, no deletion, no token")
            after = page.next
            if after is None:
                return


def _copy(source: str | None, target: str | None) -> None:
    if source is None or target is None:
        raise UsageError("name both stores: viva store copy .vivavoce/vivavoce.db postgresql://user@host/database")
    if Place(source) == Place(target):
        raise UsageError("these are the same store; name another one to copy to")
    console = notes()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with Store.open(source, create=False) as read, Store.open(target) as written, bar:
        task = bar.add_task("", total=None)
        copied = read.maintenance.copy_to(
            written, lambda run, done, total: bar.update(task, description=run, completed=done, total=total)
        )
    console.print(
        f"copied {count(copied.runs, 'new run')}, {count(copied.attempts, 'conversation')}, "
        f"{count(copied.labels, 'label')} and {copied.replies:,} replies to {written.place}; "
        f"{count(copied.completed, 'run')} completed",
        soft_wrap=True,
    )


def seconds_of(age: str, option: str) -> float:
    """Return an age such as 12h, 30d or 8w in seconds.

    Raises:
        UsageError: it is not an age.
    """
    found = re.fullmatch(r"(\d{1,6})([hdw])", age)
    if found is None:
        raise UsageError(f"{option} takes an age such as 12h, 30d or 8w, got {age!r}")
    return int(found[1]) * SECONDS[found[2]]
