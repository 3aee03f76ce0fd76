"""`viva runs grade`: grade stored conversations again, with changed or other graders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import CostOption, MaxErrorsOption, NoCacheOption, ReplayOption
from vivavoce.cli.output import StoreOption, existing, notes, out, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.report.graded_run import errors_again
from vivavoce.report.terminal import run_report
from vivavoce.report.worst_samples import worst
from vivavoce.run.options import RunOptions
from vivavoce.store.store import Store
from vivavoce.suites.experiment import open_regrading
from vivavoce.suites.load import load_suite


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    suite: Annotated[
        Path | None, typer.Option(help="The suite with the graders; default: the run's own suite.")
    ] = None,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls.")] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the summary, without progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Grade the stored conversations of a run again; no target is called.

    The old scores stay in the store. `viva show` shows the newest scores; --grading shows others.
    """
    options = RunOptions(
        max_calls=max_calls, max_cost=max_cost, max_errors=max_errors, cache=not no_cache, replay=replay
    )
    with Store.open(store_of(store), create=False) as opened:
        other = load_suite(existing(suite)) if suite else None
        progress = RunProgress(notes(), quiet)
        result = execute(open_regrading(run, other, options, store=opened, listeners=[progress]), progress)
        if result.stopped_by is not None:
            out().print(f"stopped: {result.stopped_by}; the scores of {result.run.id} have not changed")
        else:
            place = ["--store", store] if store else []
            out().print(run_report(result.summary, worst(opened, result.grading), result.run.id, options=place))
            named = ["--suite", str(suite)] if suite else []
            if again := errors_again(opened, result.grading, result.summary, [*named, *place]):
                out().print(again)
    raise typer.Exit(result.exit_code)
