"""`viva judge batches`: list or cancel pending batch jobs."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, out, print_json, store_of
from vivavoce.errors import ModelFault, UsageError
from vivavoce.pacing.loops import run as run_loop
from vivavoce.records.replies import Batch
from vivavoce.report.graded_run import continuing
from vivavoce.report.text import count, strict_json
from vivavoce.safe_text import safe
from vivavoce.store.store import Store
from vivavoce.suites.experiment import cancel_batches


def command(
    run: Annotated[str | None, typer.Argument(help="Only batches of this run: its id, or 'latest'.")] = None,
    *,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the pending batches of the run.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, including batches that have ended.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """List pending batch jobs: those that `viva judge --batch` submitted and that have no answers yet.

    Completed requests of a cancelled batch are billed. Resuming the run uses their answers and resubmits the rest.
    """
    if cancel and run is None:
        raise UsageError("--cancel needs a run: viva judge batches RUN --cancel")
    with Store.open(store_of(store), create=False) as opened:
        runs = opened.runs() if run is None else [opened.run(run)]
        if cancel:
            _cancel(opened, runs[0].id, ["--store", store] if store else [])
            return
        found = [batch for one in runs for batch in opened.batches.of_run(one.id)]
    if as_json:
        for one in found:
            print_json(strict_json(asdict(one)))
        return
    going = [one for one in found if one.ended_at is None]
    for batch in going:
        out().print(safe(batch_line(batch)), soft_wrap=True, markup=False, highlight=False)
    if not going:
        out().print("nothing is with a batch service")


def batch_line(batch: Batch) -> str:
    """Return what a batch is, in a line."""
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(batch.created_at))
    name = batch.service_id or "not submitted yet"
    return f"{name}  {batch.run_id}  {batch.model}  {count(batch.requests, 'request')}  since {since}"


def _cancel(store: Store, run_id: str, options: list[str]) -> None:
    run = store.run(run_id)
    try:
        cancelled = run_loop(cancel_batches(store, run))
    except ModelFault as fault:
        raise UsageError(f"a batch of {run.id} is not cancelled: {fault}") from fault
    for batch in cancelled:
        out().print(safe(f"cancelled: {batch_line(batch)}"), soft_wrap=True, markup=False, highlight=False)
    if not cancelled:
        out().print(f"run {run.id} has nothing with a batch service")
        return
    out().print("what was answered is charged; the run takes it, and asks the rest again, when it goes on")
    out().print(continuing(run, options), soft_wrap=True)
