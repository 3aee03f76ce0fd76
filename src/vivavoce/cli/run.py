"""`viva run`: run a suite from beginning to end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.against import Against
from vivavoce.cli.forecast import print_forecast
from vivavoce.cli.options import (
    BaselineOption,
    CostOption,
    FailOnBreakOption,
    MaxErrorsOption,
    NoCacheOption,
    ReplayOption,
    SmallestEffectOption,
)
from vivavoce.cli.output import StoreOption, existing, notes, out, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.errors import UsageError
from vivavoce.report.letta_layout import write_letta_layout
from vivavoce.report.terminal import run_report
from vivavoce.report.text import count, one_line
from vivavoce.report.worst import worst
from vivavoce.run.options import RunOptions
from vivavoce.run.result import RunResult
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.opening import reopen_run
from vivavoce.suites.output import check_output, output_of
from vivavoce.suites.stored import stored_suite
from vivavoce.suites.target_names import read_target

TrialsOption = Annotated[int | None, typer.Option(min=1, help="How often to run each sample; gives pass@k and pass^k.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check everything and count the calls; make none.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write files in the layout of letta-evals to this folder.")
]


def command(
    suite: Annotated[Path | None, typer.Argument(help="The suite: a YAML file.", show_default=False)] = None,
    *,
    target: Annotated[
        str | None,
        typer.Option(help="A target that replaces the suite's own: file.py:function or http://host/v1#MODEL."),
    ] = None,
    trials: TrialsOption = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Only the first N samples.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only samples with this tag; repeat for more.")] = None,
    sample: Annotated[list[str] | None, typer.Option(help="Only the sample with this id; repeat for more.")] = None,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="How many conversations at a time.")] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Maximum number of calls to the target and the judges together.")
    ] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    baseline: BaselineOption = None,
    smallest_effect: SmallestEffectOption = None,
    fail_on_break: FailOnBreakOption = False,
    dry_run: DryRunOption = False,
    resume: Annotated[str | None, typer.Option(help="Continue this run: do only what is not done yet.")] = None,
    errors: Annotated[bool, typer.Option("--errors", help="With --resume: retry what had an error.")] = False,
    output: OutputOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the summary, no progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Run a suite: hold its conversations, grade them, and decide with its gate whether the run passes.

    The results are stored in .vivavoce/vivavoce.db; `viva show` shows them. Press Ctrl-C once to finish the
    conversations in progress and stop, twice to stop at once; finished conversations are never lost, and --resume
    continues the run. Exit codes: 0 pass, 1 a gate failed, 2 wrong usage or configuration, 3 inconclusive, 130
    interrupted. Without a gate, a missed assertion of a row (`expect`) gives 1, and any error 3.
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
    against = Against.read(baseline, smallest_effect, fail_on_break)
    limits = RunOptions(max_calls=max_calls, max_cost=max_cost, max_errors=max_errors)
    _check_choice(suite, resume, errors=errors, fresh=options != limits or target is not None or dry_run)
    if dry_run and suite is not None:
        loaded = _loaded(suite, target)
        print_forecast(check_suite(loaded, options, keys_needed=True), store_of(store), loaded.spec.name)
        return
    with Store.open(store_of(store)) as opened:
        progress = RunProgress(notes(), quiet)
        if resume is not None:
            run = reopen_run(resume, limits, store=opened, listeners=[progress], errors=errors)
            loaded = stored_suite(opened.run(resume))
        else:
            assert suite is not None
            loaded = _loaded(suite, target)
            run = suite_run(loaded, options, store=opened, listeners=[progress])
        check_output(loaded, output)
        result = execute(run, progress)
        named = ["--store", store] if store else []
        report_run(opened, result, output or output_of(loaded), named)
        code = against.exit_code(opened, result, named) if against else result.exit_code
    raise typer.Exit(code)


def _loaded(suite: Path, target: str | None) -> Suite:
    """Return a suite, with another target if one is named."""
    path = existing(suite)
    return load_suite(path, read_target(target) if target else None)


def _check_choice(suite: Path | None, resume: str | None, *, errors: bool, fresh: bool) -> None:
    """Refuse options that do not go together; `fresh` is whether any of them is only for a new run."""
    if suite is not None and resume is not None:
        raise UsageError("name a suite to run or a run to resume, not both")
    if suite is None and resume is None:
        raise UsageError("name a suite to run, or a run to resume: viva run suite.yaml, viva run --resume RUN")
    if errors and resume is None:
        raise UsageError("--errors needs --resume RUN: it retries what ended with an error")
    if resume is not None and fresh:
        raise UsageError(
            "--resume uses the options the run was started with; it can be combined only with --errors, --max-calls, "
            "--max-cost, --max-errors, -o and -q"
        )


def _skipped(store: Store, result: RunResult) -> Iterator[str]:
    """Yield for each grader that applies to no conversation at all why it does not apply."""
    silent = [one for one in result.summary.graders if one.skipped and not one.scored and not one.errors]
    grades = next(store.outcomes(result.grading.id)).scores if silent else {}
    for one in silent:
        if (grade := grades.get(one.name)) is not None:
            yield one_line(f"{one.name} skipped {count(one.skipped, 'conversation')}: {grade.reason}", 300)


def report_run(store: Store, result: RunResult, output: Path | None, options: list[str]) -> None:
    """Print the result of a run, and write the requested files."""
    console = out()
    for note in result.notes:
        notes().print(note, style="dim")
    console.print(run_report(result.summary, worst(store, result.grading), result.run.id, options))
    for line in _skipped(store, result):
        console.print(line)
    if output is not None:
        write_letta_layout(store, result.run, result.grading, output)
    if result.stopped_by is not None:
        console.print(f"continue with: {shlex.join(['viva', 'run', '--resume', result.run.id, *options])}")
