"""`viva judge`: metrics over recorded conversations, without a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.forecast import forecast_line
from vivavoce.cli.options import CostOption, MaxErrorsOption, NoCacheOption, ReplayOption
from vivavoce.cli.output import StoreOption, existing, notes, out, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.cli.run import report_run
from vivavoce.errors import UsageError
from vivavoce.metrics.config import Scope
from vivavoce.models.batch import import_responses as read_responses
from vivavoce.pacing.loops import run as run_loop
from vivavoce.report.text import count, one_line
from vivavoce.run.options import RunOptions
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.judging import judging_suite
from vivavoce.suites.named_metrics import read_metrics
from vivavoce.suites.requests import Export
from vivavoce.suites.requests import export_requests as write_requests

Metrics = Annotated[
    str,
    typer.Option(
        help="Metrics, with commas between: names, file.py:name, file.yaml, or {metric: NAME, threshold: 0.9}. "
        "See: viva list metrics"
    ),
]
ScopeOption = Annotated[Scope | None, typer.Option(help="Judge each conversation, each turn, or each window of turns.")]


def command(
    conversations: Annotated[Path, typer.Argument(help="A JSONL, JSON, CSV or Parquet file of conversations.")],
    *,
    metrics: Metrics,
    judge: Annotated[str | None, typer.Option(help="The model that judges; VIVAVOCE_JUDGE unless named.")] = None,
    scope: ScopeOption = None,
    field: Annotated[
        list[str] | None, typer.Option(help="Where the rows keep something, as goal=metadata.wish; repeat for more.")
    ] = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="The first N conversations only.")] = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="Conversations at a time.")] = 64,
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Stop before the judge got more calls than this.")
    ] = None,
    max_cost: CostOption = None,
    max_errors: MaxErrorsOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    export_requests: Annotated[
        Path | None,
        typer.Option("--export-requests", help="Ask nobody; write the questions to this file, for OpenAI's Batch API."),
    ] = None,
    import_responses: Annotated[
        Path | None,
        typer.Option("--import-responses", help="Take the answers of this file, and judge by kept answers only."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would be asked.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; the summary only.")] = False,
    store: StoreOption = None,
) -> None:
    """Measure recorded conversations with metrics; each row has `messages`, and what the metrics need, such as `goal`.

    The records go to .vivavoce/vivavoce.db like those of any run: `viva show` reads them, `viva run --resume` goes on
    with what an interruption left. Exit codes: 0 done, 2 wrong usage, 3 inconclusive (any error, unless --max-errors
    allows it), 130 interrupted.
    """
    replay = replay or import_responses is not None
    options = RunOptions(
        max_samples=max_samples,
        max_calls=max_calls,
        max_cost=max_cost,
        max_errors=max_errors,
        cache=not no_cache,
        replay=replay,
    )
    named = read_metrics(metrics)
    suite = judging_suite(
        existing(conversations), named, judge, scope=scope, fields=_fields(field or []), max_concurrent=max_concurrent
    )
    if dry_run:
        out().print(forecast_line(check_suite(suite, options, keys_needed=True)))
        return
    with Store.open(store_of(store)) as opened:
        if export_requests is not None:
            export = run_loop(write_requests(suite, _named(judge), export_requests, opened, options))
            _tell_export(export)
            return
        if import_responses is not None:
            _import(existing(import_responses), opened, _named(judge))
        progress = RunProgress(notes(), quiet)
        result = execute(suite_run(suite, options, store=opened, listeners=[progress]), progress)
        report_run(opened, result, None, ["--store", store] if store else [])
    raise typer.Exit(result.exit_code)


def _named(judge: str | None) -> str:
    named = judge or settings().judge
    if named is None:
        raise UsageError("name the judge that the questions are for with --judge, or in VIVAVOCE_JUDGE")
    return named


def _tell_export(export: Export) -> None:
    for line in export.broken:
        notes().print(one_line(line, 300))
    files = ", ".join(str(file) for file in export.files) or "no file"
    out().print(f"{count(export.asked, 'question')} in {files}; {count(export.answered, 'verdict')} needed none")
    if export.asked:
        out().print("have them answered, then give the answers back with --import-responses FILE")


def _import(path: Path, store: Store, judge: str) -> None:
    replies = store.replies()
    try:
        report = read_responses(path, replies, judge)
    finally:
        run_loop(replies.close())
    for failed in report.failed:
        notes().print(one_line(f"{failed.custom_id}: {failed.cause}", 300))
    cost = "" if report.usage.cost is None else f", for {report.usage.cost:.4f} US dollars"
    replaced = f", {report.replaced} in place of another" if report.replaced else ""
    notes().print(f"{count(report.answered, 'answer')} taken, {report.added} of them new{replaced}{cost}")


def _fields(given: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for one in given:
        name, _, path = one.partition("=")
        if not path:
            raise UsageError(f"--field {one}: write it as goal=metadata.wish")
        fields[name] = path
    return fields
