"""`viva run`: run a suite from beginning to end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import (
    ApiKeyOption,
    BaselineOption,
    BaseUrlOption,
    CallsOption,
    CostOption,
    DryRunOption,
    EngineOption,
    EnvFileOption,
    FailedOption,
    FailOnBreakOption,
    InParts,
    LiveOption,
    MaxErrorsOption,
    ModelHandleOption,
    NoCacheOption,
    OutputOption,
    PartsOption,
    RayAddressOption,
    RecordingOption,
    ReplayOption,
    ResumeOption,
    SampleOption,
    ShardOption,
    SmallestEffectOption,
    SuitesArgument,
    TableOption,
    TargetOption,
    TrialsOption,
    WatchOption,
    WorkersOption,
    check_alone,
)
from vivavoce.cli.output import StoreOption, store_of
from vivavoce.cli.runner import Against, Runner, loaded, work_in_parts
from vivavoce.errors import UsageError
from vivavoce.plugins import lazy
from vivavoce.run.options import RunOptions
from vivavoce.store.runs.naming import is_latest
from vivavoce.store.store import Store
from vivavoce.suites.check import run_checks
from vivavoce.suites.load import Suite, TargetChanges


def command(
    suites: SuitesArgument = None,
    *,
    target: TargetOption = None,
    model_handle: ModelHandleOption = None,
    base_url: BaseUrlOption = None,
    api_key: ApiKeyOption = None,
    trials: TrialsOption = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Only the first N samples.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only samples with this tag; repeat for more.")] = None,
    sample: SampleOption = None,
    max_concurrent: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent conversations.")] = None,
    max_calls: CallsOption = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    recording: RecordingOption = None,
    live: LiveOption = None,
    baseline: BaselineOption = None,
    smallest_effect: SmallestEffectOption = None,
    fail_on_break: FailOnBreakOption = False,
    dry_run: DryRunOption = False,
    failed: FailedOption = None,
    watch: WatchOption = False,
    resume: ResumeOption = None,
    errors: Annotated[bool, typer.Option("--errors", help="With --resume: also retry errors.")] = False,
    output: OutputOption = None,
    table: TableOption = False,
    env_file: EnvFileOption = None,
    parts: PartsOption = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the summary, without progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Run a suite's conversations, grade them, and check the gate.

    Several suites run one after the other; the exit code is the worst of them: 2, then 1, then 3.

    The results are stored in .vivavoce/vivavoce.db; `viva show` shows them. Press Ctrl-C once to finish the
    conversations in progress and stop, twice to stop immediately; finished conversations are never lost, and --resume
    continues the run. Exit codes: 0 pass, 1 a gate or an assertion failed or a rule was broken, 2 wrong usage or
    configuration, 3 inconclusive (without a gate: any error), 130 interrupted.
    """
    chosen = {"trials": trials, "max_samples": max_samples, "tags": tag, "samples": sample}
    asked = {"max_concurrent": max_concurrent, "cache": not no_cache, "replay": replay}
    limits = {"max_calls": max_calls, "max_cost": max_cost, "max_errors": max_errors}
    options = RunOptions.model_validate({**chosen, **asked, **limits})
    against, paths = Against.read(baseline, smallest_effect, fail_on_break), suites or []
    how = InParts.read(parts, shard, engine, workers, ray_address)
    changes = TargetChanges(model_handle, base_url, api_key, _resolve_recording(recording), live or ())
    ways = {"--resume": resume, "--failed": failed, "--watch": watch, "--dry-run": dry_run}
    _check_named(paths, resume, failed, changes, output)
    _check_one_way(ways)
    _check_resume(resume, errors=errors, fresh=_is_fresh(options, target, changes))
    _check_against(against, {"--failed": failed, "--watch": watch, "several suites": paths[1:]})
    check_alone(how, ways, {"--baseline": against, "--table": table, "--output": output, "several suites": paths[1:]})
    if env_file is not None:
        lazy("vivavoce.cli.options:load_env_file")(env_file)
    if dry_run:
        return _forecast([loaded(path, target, changes) for path in paths], options, store_of(store), table=table)
    if how is not None:
        raise typer.Exit(work_in_parts(loaded(paths[0], target, changes), how, options, store=store, quiet=quiet))
    again = _option("--store", store), _option("--env-file", env_file)
    with Store.open(store_of(store)) as opened:
        runner = Runner(opened, options, target, changes, output, quiet, table, against, *again)
        raise typer.Exit(_watch(runner, paths) if watch else _run(runner, paths, failed, resume, errors=errors))


def _is_fresh(options: RunOptions, target: Sequence[str] | None, changes: TargetChanges) -> bool:
    """Return whether anything is chosen that is only for a new run: more than limits."""
    limits = RunOptions(max_calls=options.max_calls, max_cost=options.max_cost, max_errors=options.max_errors)
    return options != limits or target is not None or bool(changes)


def _resolve_recording(recording: Path | None) -> str | None:
    """Return where a recording is, whatever the folder of the suite."""
    return None if recording is None else str(recording.absolute())


def _option(name: str, value: object) -> list[str]:
    """Return an option as it is written, nothing where it is not given."""
    return [name, str(value)] if value else []


def _forecast(suites: Sequence[Suite], options: RunOptions, store: str, *, table: bool) -> None:
    """Print what a run of each suite would do; there are no scores of which a table could be."""
    if table:
        raise UsageError("--table and --dry-run cannot be combined: a dry run has no scores")
    for suite in suites:
        lazy("vivavoce.cli.validate:print_forecast")(run_checks(suite, options, keys_needed=True), store)


def _run(runner: Runner, paths: Sequence[Path], failed: str | None, resume: str | None, *, errors: bool) -> int:
    """Run the suites, or what failed in a run of each, or continue with a run, and return the exit code."""
    if resume is not None:
        return runner.resumed(resume, paths[0] if paths else None, errors=errors).code
    if len(paths) > 1:
        return runner.every(paths, runner.suite if failed is None else lambda path: runner.failed(failed, path))
    if failed is not None:
        return runner.failed(failed, paths[0] if paths else None).code
    return runner.suite(paths[0]).code


def _check_named(
    paths: Sequence[Path], resume: str | None, failed: str | None, changes: TargetChanges, output: Path | None
) -> None:
    """Refuse a command line that names nothing to run, or more than it can."""
    if not paths and resume is None and failed is None:
        raise UsageError("name a suite to run, or a run to resume: viva run suite.yaml, viva run --resume RUN")
    if changes and not paths and resume is None:
        raise UsageError("--model-handle, --base-url, --api-key, --recording and --live need a suite")
    if paths and resume is not None and not is_latest(resume):
        raise UsageError("name a suite to run or a run to resume, not both")
    if len(paths) > 1 and resume is not None:
        raise UsageError("--resume continues one run; name one suite")
    if len(paths) > 1 and output is not None:
        raise UsageError("--output is a folder for one suite; write output: in each of several suites")


def _check_one_way(chosen: Mapping[str, object]) -> None:
    """Refuse two ways of running at once."""
    if len(several := [name for name, value in chosen.items() if value]) > 1:
        raise UsageError(f"{several[0]} and {several[1]} cannot be combined; use one of them")


def _check_resume(resume: str | None, *, errors: bool, fresh: bool) -> None:
    """Refuse options that do not go with a resumed run; `fresh` is whether any of them is only for a new run."""
    if errors and resume is None:
        raise UsageError("--errors needs --resume RUN: it retries what ended with an error")
    if resume is not None and fresh:
        raise UsageError(
            "--resume uses the options the run was started with; it can be combined only with --errors, --max-calls, "
            "--max-cost, --max-errors, -o and -q"
        )


def _watch(runner: Runner, paths: Sequence[Path]) -> int:
    code: int = lazy("vivavoce.cli.watch:watch_suites")(runner, paths)
    return code


def _check_against(against: Against | None, parts: Mapping[str, object]) -> None:
    """Refuse a baseline for what it does not fit: it is of one suite, and of all its samples."""
    if against is not None and (wrong := next((name for name, value in parts.items() if value), None)):
        raise UsageError(f"--baseline and {wrong} cannot be combined: a baseline is for one suite with all its samples")
