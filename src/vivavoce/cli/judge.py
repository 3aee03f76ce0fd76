"""`viva judge`: metrics over recorded conversations, without a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.options import (
    CostOption,
    EngineOption,
    InParts,
    MaxErrorsOption,
    NoCacheOption,
    PartsOption,
    RayAddressOption,
    ReplayOption,
    ShardOption,
    WorkersOption,
    check_alone,
    named_paths,
)
from vivavoce.cli.output import StoreOption, existing, notes, out, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.cli.runner import report_run, work_in_parts
from vivavoce.cli.validate import forecast_line
from vivavoce.errors import UsageError
from vivavoce.extensions import needed_answer
from vivavoce.metrics.config import Scope
from vivavoce.report.text import count, one_line
from vivavoce.run.batches import Export
from vivavoce.run.options import RunOptions
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import read_metrics

Metrics = Annotated[
    str,
    typer.Option(
        help="Metrics, separated by commas: names, file.py:name, file.yaml, or {metric: NAME, threshold: 0.9}. "
        "See: viva validate list metrics"
    ),
]
ScopeOption = Annotated[
    Scope | None, typer.Option(help="What to judge: each conversation, each turn, or each window of turns.")
]

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="The format of the file (see viva validate list formats); default: detected from its content.",
    ),
]
ExportOption = Annotated[
    Path | None,
    typer.Option(
        "--export-requests", help="Do not call the judge; write its requests to this file, for OpenAI's Batch API."
    ),
]
BatchOption = Annotated[
    bool,
    typer.Option("--batch", help="Use batch requests only: half the price, answers within a day."),
]
ImportOption = Annotated[
    Path | None,
    typer.Option("--import-responses", help="Import judge answers from this file, and use only cached answers."),
]

ConversationsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Conversations in a JSONL, JSON, CSV or Parquet file; with --parts, files, patterns or addresses."
    ),
]
FieldOption = Annotated[
    list[str] | None,
    typer.Option(help="Map a field to another column, such as goal=metadata.wish; repeat for more."),
]
SampleOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Judge only a random sample of N conversations; rates are estimates for all, with an interval.",
    ),
]
ByOption = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="With --sample: stratify by these, separated by commas: turns, tool_errors, tag, a field such as "
        "metadata.language, or an exact metric.",
    ),
]
WeightByOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --sample: sample with probability proportional to this: turns, tool_errors, a numeric field, or "
        "an exact metric.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Check everything and count the calls without making any.")
]


def command(
    conversations: ConversationsArgument,
    *,
    metrics: Metrics,
    judge: Annotated[str | None, typer.Option(help="The model that judges; default: VIVAVOCE_JUDGE.")] = None,
    scope: ScopeOption = None,
    from_: FromOption = None,
    field: FieldOption = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Only the first N conversations.")] = None,
    sample: SampleOption = None,
    by: ByOption = "",
    weight_by: WeightByOption = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum concurrent conversations.")] = 64,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls.")] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    batch: BatchOption = False,
    export_requests: ExportOption = None,
    import_responses: ImportOption = None,
    dry_run: DryRunOption = False,
    parts: PartsOption = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the summary, without progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Measure recorded conversations with metrics. Each row has `messages` and what the metrics need, such as `goal`.

    The results are stored in .vivavoce/vivavoce.db, as for every run: `viva show` shows them, and `viva run --resume`
    continues an interrupted run. With --batch, Ctrl-C leaves the batches at their service; resuming the run, or
    repeating the command, uses their answers. Exit codes: 0 done, 1 an assertion of a row failed or a rule was broken,
    2 wrong usage, 3 inconclusive (any error, unless --max-errors allows it), 130 interrupted.
    """
    replay = replay or import_responses is not None
    _check_batch(batch, {"--no-cache": no_cache, "--replay": replay, "--export-requests": export_requests})
    how = InParts.read(parts, shard, engine, workers, ray_address)
    by_hand = {"--export-requests": export_requests, "--import-responses": import_responses}
    check_alone(how, by_hand, {"--batch": batch, "--dry-run": dry_run, "--sample": sample})
    drawn = _sampling(sample, by, weight_by, {"--max-samples": max_samples})
    limits = {"max_samples": max_samples, "max_calls": max_calls, "max_cost": max_cost, "max_errors": max_errors}
    options = RunOptions.model_validate({**limits, "cache": not no_cache, "replay": replay, "batch": batch} | drawn)
    suite = judging_suite(
        _file(conversations) if how is None else Path(conversations[0]),
        read_metrics(metrics),
        judge,
        name=None if how is None else f"judge {how.name}",
        scope=scope,
        fields=named_paths(field or []),
        format=from_,
        max_concurrent=max_concurrent,
    )
    if how is not None:
        raise typer.Exit(work_in_parts(suite, how, options, files=conversations, quiet=quiet))
    if dry_run:
        out().print(forecast_line(check_suite(suite, options, keys_needed=True)))
        return
    with Store.open(store_of(store)) as opened:
        if export_requests is not None:
            print_export(exported(suite, named_judge(judge), export_requests, opened, options))
            return
        if import_responses is not None:
            import_answers(existing(import_responses), opened, named_judge(judge))
        code = _judge_suite(suite, options, opened, store, quiet=quiet)
    raise typer.Exit(code)


def _judge_suite(suite: Suite, options: RunOptions, opened: Store, store: str | None, *, quiet: bool) -> int:
    """Judge the conversations of a suite, report, and return the exit code; `store` is what names the store."""
    progress = RunProgress(notes(), quiet)
    result = execute(suite_run(suite, options, store=opened, listeners=[progress]), progress)
    report_run(opened, result, None, ["--store", store] if store else [])
    return result.exit_code


def _file(names: Sequence[str]) -> Path:
    """Return the only file that is named.

    Raises:
        UsageError: there are several, or it does not exist.
    """
    path = Path(names[0])
    if len(names) > 1 or (not path.exists() and any(sign in names[0] for sign in "*?[")):
        raise UsageError(f"{names[-1]}: several files are judged in parts; name a folder for the results with --parts")
    return existing(path)


def _sampling(sample: int | None, by: str, weight_by: str | None, others: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a run that draws; refuse what says nothing without it, and what does not go with it."""
    given = {"--by": by, "--weight-by": weight_by}
    if sample is None and (name := next((name for name, value in given.items() if value), None)):
        raise UsageError(f"{name} needs --sample N, the number of conversations to draw")
    if sample is not None and (name := next((name for name, value in others.items() if value), None)):
        raise UsageError(f"--sample cannot be combined with {name}: --sample draws from the whole file")
    names = [one.strip() for one in by.split(",") if one.strip()]
    return {"sample": sample, "sample_by": names or None, "weight_by": weight_by}


def _check_batch(batch: bool, others: Mapping[str, object]) -> None:
    """Refuse what does not go with batches."""
    if batch and (name := next((name for name, given in others.items() if given), None)):
        raise UsageError(f"--batch cannot be combined with {name}: a batch asks for missing answers and caches them")


def named_judge(judge: str | None) -> str:
    """Return the judge that answers will be of.

    Raises:
        UsageError: none is named.
    """
    named = judge or settings().judge
    if named is None:
        raise UsageError("no judge is configured: use --judge, or set VIVAVOCE_JUDGE")
    return named


def exported(suite: Suite, judge: str, path: Path, store: Store, options: RunOptions) -> Export:
    """Write the requests of a suite to files, and return what they have."""
    arguments = {"suite": suite, "judge": judge, "path": path, "store": store, "options": options}
    export: Export = needed_answer("--export-requests", "batches", "export_requests", **arguments)
    return export


def print_export(export: Export) -> None:
    """Say what was exported."""
    for line in export.broken:
        notes().print(one_line(line, 300))
    files = ", ".join(str(file) for file in export.files) or "no file"
    out().print(
        f"{count(export.questions, 'request')} in {files}; {count(export.answered_count, 'verdict')} needed no request"
    )
    if export.questions:
        out().print("send them to the Batch API, then import the answers with --import-responses FILE")


def import_answers(path: Path, store: Store, judge: str) -> None:
    """Keep the answers of a file as those of a judge, and say how many there were."""
    needed_answer("--import-responses", "batches", "import_responses", path=path, store=store, judge=judge)
