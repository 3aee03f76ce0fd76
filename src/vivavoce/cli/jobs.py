"""`viva serve jobs`: list the jobs of a store, or cancel one."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.report.text import Column, FittingTable, strict_json
from vivavoce.safe_text import safe
from vivavoce.server.job import cancel_stored_job, current_record
from vivavoce.server.job_record import JobRecord
from vivavoce.store.store import Store

COLUMNS = (
    Column("job"),
    Column("created", rank=4),
    Column("kind", rank=5),
    Column("status"),
    Column("done", "right", rank=3),
    Column("run", rank=2),
    Column("detail", flows=True),
)


def command(
    what: Annotated[Literal["list", "cancel"], typer.Argument(help="The action.")] = "list",
    job: Annotated[
        str | None, typer.Argument(metavar="ID", help="cancel: the id of the job.", show_default=False)
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, help="list: maximum number of jobs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per job.")] = False,
    store: StoreOption = None,
) -> None:
    """List the jobs of the servers of a store, newest first, or cancel one; no server needs to run.

    A server that runs a cancelled job finishes the conversations in progress; cancel the job again to stop these, too.
    If no server runs the job, it ends immediately, and no server continues it.
    """
    if (what == "cancel") is (job is None):
        raise UsageError(
            "name one job: viva serve jobs cancel ID" if job is None else "viva serve jobs list takes no job"
        )
    with Store.open(store_of(store), create=False) as opened:
        if job is not None:
            _show_cancelled(cancel_stored_job(opened, job), as_json)
            return
        records = [current_record(opened, row) for row in opened.jobs.list(None, limit)]
    if as_json:
        for record in records:
            print_json(strict_json(record.model_dump()))
    else:
        out().print(FittingTable(COLUMNS, [[*map(Text, _cells(record))] for record in records]))


def _show_cancelled(record: JobRecord, as_json: bool) -> None:
    if as_json:
        print_json(strict_json(record.model_dump()))
    elif record.status == "interrupted" and record.detail == "cancelled":
        notes().print(f"cancelled job {record.id}", soft_wrap=True)
    elif record.over:
        notes().print(f"job {record.id} is already over: {record.status}", soft_wrap=True)
    else:
        notes().print(
            f"asked the server that runs job {record.id} to stop it after the conversations in progress",
            soft_wrap=True,
        )


def _cells(record: JobRecord) -> list[str]:
    created = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created_at))
    done = f"{record.done:,}" if record.planned is None else f"{record.done:,} of {record.planned:,}"
    return [record.id, created, record.kind, record.status, done, record.run or "–", safe(record.detail or "")]
