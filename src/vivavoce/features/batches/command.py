"""`viva judge batches`: list or cancel pending batch jobs; and answers of a batch service that come in a file."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, notes, out, print_json, store_of
from vivavoce.errors import ModelFault, UsageError
from vivavoce.features.batches.files import import_responses as read_responses
from vivavoce.features.batches.questions import BatchQuestions
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import run as run_loop
from vivavoce.records.replies import Batch
from vivavoce.records.run import Run
from vivavoce.report.graded_run import continuing
from vivavoce.report.text import count, one_line, strict_json
from vivavoce.run.execution import kept_answers
from vivavoce.safe_text import safe
from vivavoce.store.store import Store
from vivavoce.suites.experiment import build_experiment, stored_options
from vivavoce.suites.load import stored_suite


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
        raise UsageError(f"cannot cancel a batch of {run.id}: {fault}") from fault
    for batch in cancelled:
        out().print(safe(f"cancelled: {batch_line(batch)}"), soft_wrap=True, markup=False, highlight=False)
    if not cancelled:
        out().print(f"run {run.id} has nothing with a batch service")
        return
    out().print("what was answered is charged; the run takes it, and asks the rest again, when it goes on")
    out().print(continuing(run, options), soft_wrap=True)


async def cancel_batches(store: Store, run: Run) -> list[Batch]:
    """Ask the services of a run to answer no more, and return the batches that this is about.

    What they have answered is charged, and taken when the run goes on.

    Raises:
        UsageError: the judges of the run cannot be opened, as where a key is missing.
        ModelFault: a service refuses.
    """
    going = [one for one in store.batches.of_run(run.id) if one.ended_at is None and one.service_id is not None]
    if not going:
        return []
    options = stored_options(run, batch=True, max_calls=None, max_cost=None)
    async with kept_answers(store, cache=True) as replies:
        experiment = build_experiment(stored_suite(run), options, Budget(), replies)
        assert isinstance(experiment.batches, BatchQuestions)
        models = experiment.batches.models
        try:
            for batch in going:
                await models[batch.identity].service.cancel(batch.service_id or "")
        finally:
            for model in models.values():
                await model.service.close()
            await experiment.close()
    return going


def import_responses(path: Path, store: Store, judge: str) -> int:
    """Keep the answers of a file as those of a judge, say how many there were, and return that."""
    replies = store.replies()
    try:
        report = read_responses(path, replies, judge)
    finally:
        run_loop(replies.close())
    for failed in report.failed:
        notes().print(one_line(f"{failed.custom_id}: {failed.cause}", 300))
    cost = "" if report.usage.cost is None else f", for {report.usage.cost:.4f} US dollars"
    replaced = f", {report.replaced} replacing another" if report.replaced else ""
    notes().print(f"{count(report.answered, 'answer')} imported, {report.added} of them new{replaced}{cost}")
    return report.answered
