"""`viva run`: a suite from beginning to end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.forecast import forecast_line
from vivavoce.cli.output import (
    CostOption,
    MaxErrorsOption,
    NoCacheOption,
    ReplayOption,
    StoreOption,
    existing,
    notes,
    out,
    store_of,
)
from vivavoce.cli.progress import RunProgress, interruptible
from vivavoce.errors import UsageError
from vivavoce.pacing.loops import run as run_loop
from vivavoce.report.letta_layout import write_letta_layout
from vivavoce.report.terminal import run_report
from vivavoce.report.text import count, one_line
from vivavoce.report.worst import worst
from vivavoce.run.check import check_suite
from vivavoce.run.opening import open_run, reopen_run
from vivavoce.run.output import check_output, output_of
from vivavoce.run.plan import RunOptions
from vivavoce.run.result import RunResult
from vivavoce.store.store import Store
from vivavoce.suites.load import load_suite
from vivavoce.suites.target_names import read_target


def command(
    suite: Annotated[Path | None, typer.Argument(help="The suite, a YAML file.", show_default=False)] = None,
    *,
    target: Annotated[
        str | None,
        typer.Option(help="Test this instead of the suite's target: file.py:function or http://host/v1#MODEL."),
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="How often each sample is asked; gives pass^k.")] = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="The first N samples only.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only samples with this tag; repeat for more.")] = None,
    sample: Annotated[list[str] | None, typer.Option(help="Only the sample of this id; repeat for more.")] = None,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="Conversations at a time.")] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Stop before the target and the judges got more calls than this.")
    ] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would be called.")] = False,
    resume: Annotated[str | None, typer.Option(help="Go on with this run; do only what is left.")] = None,
    errors: Annotated[bool, typer.Option("--errors", help="With --resume: try what had an error again.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write letta-evals files here.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; the summary only.")] = False,
    store: StoreOption = None,
) -> None:
    """Hold the conversations of a suite, grade them, and decide by its gate.

    The records go to .vivavoce/vivavoce.db; `viva show` reads them. Ctrl-C once finishes what is in flight, twice
    stops; either way nothing that was finished is lost, and --resume goes on. Exit codes: 0 pass, 1 a gate failed,
    2 wrong usage or configuration, 3 inconclusive, 130 interrupted. Without a gate, any error makes it 3.
    """
    options = RunOptions(
        trials=trials,
        max_samples=max_samples,
        tags=tag,
        samples=sample,
        max_concurrent=max_concurrent,
        max_calls=max_calls,
        max_cost=max_cost,
        max_errors=max_errors,
        cache=not no_cache,
        replay=replay,
    )
    going_on = RunOptions(max_calls=max_calls, max_cost=max_cost, max_errors=max_errors)
    _check_choice(suite, resume, errors=errors, fresh=options != going_on or target is not None or dry_run)
    if dry_run and suite is not None:
        _forecast(suite, target, options)
        return
    with Store.open(store_of(store)) as opened:
        progress = RunProgress(notes())
        listeners = [] if quiet else [progress]
        if resume is not None:
            run = reopen_run(
                resume,
                store=opened,
                listeners=listeners,
                max_calls=max_calls,
                max_cost=max_cost,
                max_errors=max_errors,
                errors=errors,
            )
        else:
            assert suite is not None
            run = open_run(existing(suite), options, target=target, store=opened, listeners=listeners)
        check_output(run.suite, output)
        with progress:
            result = run_loop(interruptible(run, progress))
        report_run(opened, result, output or output_of(run.suite), ["--store", store] if store else [])
    raise typer.Exit(result.exit_code)


def _forecast(suite: Path, target: str | None, options: RunOptions) -> None:
    replaced = read_target(target) if target else None
    out().print(forecast_line(check_suite(load_suite(existing(suite), replaced), options, keys_needed=True)))


def _check_choice(suite: Path | None, resume: str | None, *, errors: bool, fresh: bool) -> None:
    """Refuse options that do not go together; `fresh` says that there are some which only a new run takes."""
    if suite is not None and resume is not None:
        raise UsageError("name a suite to run, or a run to go on with, not both")
    if suite is None and resume is None:
        raise UsageError("name a suite to run, or a run to go on with: viva run suite.yaml, viva run --resume RUN")
    if errors and resume is None:
        raise UsageError("--errors goes with --resume RUN: it tries again what ended in an error")
    if resume is not None and fresh:
        raise UsageError(
            "--resume goes on as the run began; of the other options only --errors, --max-calls, --max-cost, "
            "--max-errors, -o and -q go with it"
        )


def _skipped(store: Store, result: RunResult) -> Iterator[str]:
    """Yield why graders apply to no conversation at all, as the first one says."""
    silent = [one for one in result.summary.graders if one.skipped and not one.scored and not one.errors]
    grades = next(store.outcomes(result.grading.id)).scores if silent else {}
    for one in silent:
        if (grade := grades.get(one.name)) is not None:
            yield one_line(f"{one.name} skipped {count(one.skipped, 'conversation')}: {grade.reason}", 300)


def report_run(store: Store, result: RunResult, output: Path | None, options: list[str]) -> None:
    """Print what came out of a run, and write the files that were asked for."""
    console = out()
    for note in result.notes:
        notes().print(note, style="dim")
    console.print(run_report(result.summary, worst(store, result.grading), result.run.id, options))
    for line in _skipped(store, result):
        console.print(line)
    if output is not None:
        write_letta_layout(store, result.run, result.grading, output)
    if result.stopped_by is not None:
        console.print(f"go on with: {shlex.join(['viva', 'run', '--resume', result.run.id, *options])}")
