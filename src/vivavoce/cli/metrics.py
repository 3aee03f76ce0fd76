"""`viva metrics test`: does a metric see known defects, and only these?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vivavoce.cli.forecast import forecast_line
from vivavoce.cli.judge import import_answers, named_judge, print_export
from vivavoce.cli.options import CostOption, NoCacheOption, ReplayOption, named_paths
from vivavoce.cli.output import StoreOption, existing, notes, out, print_json, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.errors import UsageError
from vivavoce.files.whole_file import whole_file
from vivavoce.pacing.loops import run as run_loop
from vivavoce.report.again import continuing
from vivavoce.report.text import count
from vivavoce.run.options import RunOptions
from vivavoce.run.result import RunResult
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.settings import WORKSPACE
from vivavoce.stats.ratings import ratings_at
from vivavoce.store.store import Store
from vivavoce.suites.check import check_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.judging import judging_suite
from vivavoce.suites.load import Suite
from vivavoce.suites.named_metrics import Named, read_metrics, short_name
from vivavoce.suites.requests import export_requests as write_requests
from vivavoce.testing.metric_test import Answered, MetricTest, answered, figures_of
from vivavoce.testing.metric_test_lines import gate_lines, markdown_lines, terminal_lines
from vivavoce.testing.metric_versions import as_they_are, chosen_defects, recorded, versions

OWN = Path(__file__).parents[1] / "testing" / "conversations.jsonl"
"""Conversations that went well, for those who have none at hand."""
INCONCLUSIVE = 3


def command(
    what: Annotated[Literal["test"], typer.Argument(help="What to do with metrics.")],
    metrics: Annotated[
        str, typer.Argument(help="Metrics, separated by commas, as in viva judge --metrics. See: viva list metrics")
    ],
    *,
    judge: Annotated[
        list[str] | None,
        typer.Option(help="The model that judges; default: VIVAVOCE_JUDGE. Repeat it to compare judges."),
    ] = None,
    on: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Recorded conversations that went well; default: some that viva brings along."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Only conversations that this label of theirs calls good; default: those that the judges pass."
        ),
    ] = None,
    good_from: Annotated[float | None, typer.Option(help="With --label: from which number one is good.")] = None,
    defects: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Only these defects, separated by commas. See: viva list defects"),
    ] = None,
    min_detection: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Fail where a smaller share of the defects is seen.")
    ] = None,
    max_false_alarms: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Fail where a larger share of harmless edits moves a metric.")
    ] = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Only the first N conversations.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="What decides where a defect is put.")] = 0,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="The format of the file (see viva list formats)."),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(help="Where a row has a value under another name, such as goal=metadata.wish; repeat for more."),
    ] = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="How many conversations at a time.")] = 64,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls, of each run.")] = None,
    max_cost: CostOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    export_requests: Annotated[
        Path | None,
        typer.Option("--export-requests", help="Do not call the judge; write its requests to this file."),
    ] = None,
    import_responses: Annotated[
        Path | None,
        typer.Option("--import-responses", help="Import judge answers from this file, and use only cached answers."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and count the calls; make none.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the figures as Markdown.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Plant known defects into conversations that went well, and see whether metrics find them.

    Code, not a model, changes each conversation: a wrong argument, a forgotten fact, an insult, a loop and more, one at
    a time. A metric should fail these, and name the turn. Harmless edits of the same conversations (other names, the
    order of keys, Markdown, padding, flattery) should move nothing. Only conversations that are good are changed: those
    that --label says are, or else those that all judges pass. Every answer is kept, so that a repetition costs nothing.

    Exit codes: 0 done, 1 --min-detection or --max-false-alarms is not met, 2 wrong usage, 3 inconclusive, 130
    interrupted.
    """
    if good_from is not None and label is None:
        raise UsageError("--good-from belongs to a label: name it with --label")
    if as_json and markdown:
        raise UsageError("--json and --markdown are two formats; name one")
    judges: list[str | None] = [*dict.fromkeys(judge or ())] or [None]
    if len(judges) > 1 and (export_requests or import_responses):
        raise UsageError("--export-requests and --import-responses are for one judge at a time")
    named = read_metrics(metrics)
    planted = chosen_defects(map(_kind, named), _names(defects))
    fields = named_paths(field or [])
    samples = list(recorded(read_samples(existing(on) if on else OWN, fields=fields, limit=max_samples, format=from_)))
    good = samples if label is None else [one for one in samples if _is_good(one, label, good_from)]
    if not good:
        raise UsageError(f"no conversation is good by labels.{label}, so that there is none to put a defect into")
    offline = replay or import_responses is not None or export_requests is not None
    options = RunOptions(max_calls=max_calls, max_cost=max_cost, cache=not no_cache, replay=offline)
    test = _Test(named, max_concurrent, options, quiet)
    everything = test.file(chain(as_they_are(good), versions(good, planted, seed)))
    if dry_run:
        for one in judges:
            out().print(forecast_line(check_suite(test.suite(everything, one), options, keys_needed=True)))
        return
    with Store.open(store_of(store)) as opened:
        if import_responses is not None:
            import_answers(existing(import_responses), opened, named_judge(judges[0]))
        whole: list[RunResult] = []
        if label is None:
            unchanged = test.file(as_they_are(good))
            if export_requests is not None and test.exported(unchanged, judges[0], export_requests, opened):
                return
            whole = [test.run(unchanged, one, opened) for one in judges]
            good = _passed(good, whole)
            everything = test.file(versions(good, planted, seed))
        if export_requests is not None:
            test.exported(everything, judges[0], export_requests, opened)
            return
        results = [test.run(everything, one, opened) for one in judges]
        found = figures_of(
            [
                one
                for number, judged_by in enumerate(judges)
                for one in test.answered([*whole[number : number + 1], results[number]], judged_by)
            ],
            test.kinds,
            conversations=len(good),
            left_out=len(samples) - len(good),
        )
    _print(found, as_json=as_json, markdown=markdown)
    failed = list(gate_lines(found, min_detection, max_false_alarms))
    for line in failed:
        notes().print(line, soft_wrap=True, markup=False, highlight=False)
    raise typer.Exit(1 if failed else INCONCLUSIVE if any(one.errors for one in found.metrics) else 0)


@dataclass(frozen=True, slots=True)
class _Test:
    """How the versions of conversations are judged: each file of them in one run for each judge."""

    metrics: Sequence[Named]
    max_concurrent: int
    options: RunOptions
    quiet: bool

    @property
    def kinds(self) -> dict[str, str]:
        """The metric behind each name of scores."""
        return {_score_name(one): _kind(one) for one in self.metrics}

    def suite(self, path: Path, judge: str | None) -> Suite:
        name = f"test of {', '.join(self.kinds)}"
        return judging_suite(path, self.metrics, judge, name=name[:100], max_concurrent=self.max_concurrent)

    def file(self, rows: Iterable[dict[str, Any]]) -> Path:
        """Write rows to a file that is named after what is in it, and return its path."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        data = text.encode("utf-8", "backslashreplace")
        path = WORKSPACE / "metric-tests" / f"{blake2b(data, digest_size=8).hexdigest()}.jsonl"
        if not path.exists():
            with whole_file(path) as part:
                part.write_bytes(data)
        return path

    def run(self, path: Path, judge: str | None, store: Store) -> RunResult:
        """Judge every version; an answer that is kept is not asked for again."""
        progress = RunProgress(notes(), self.quiet)
        result = execute(suite_run(self.suite(path, judge), self.options, store=store, listeners=[progress]), progress)
        if result.stopped_by is not None:
            notes().print(continuing(result.run, []), soft_wrap=True)
            raise typer.Exit(result.exit_code or INCONCLUSIVE)
        return result

    def answered(self, results: Sequence[RunResult], judge: str | None) -> list[Answered]:
        """Return the scores of one judge, of all its runs."""
        outcomes = chain.from_iterable(one.outcomes() for one in results)
        return answered(outcomes, results[-1].run.id, dict.fromkeys(self.kinds, judge))

    def exported(self, path: Path, judge: str | None, to: Path, store: Store) -> int:
        """Write the requests without an answer, and return how many there are."""
        export = run_loop(write_requests(self.suite(path, judge), named_judge(judge), to, store, self.options))
        if export.questions:
            print_export(export)
        return export.questions


def _passed(samples: Sequence[Sample], results: Sequence[RunResult]) -> list[Sample]:
    """Return the conversations that no metric of any run fails, and that at least one passes.

    Raises:
        UsageError: there is none.
    """
    passed, lost = {(one.id, one.trial or 0) for one in samples}, 0
    for result in results:
        for outcome in result.outcomes():
            scores = outcome.scores.values()
            scored = any(one.state == "scored" for one in scores) and all(one.state != "error" for one in scores)
            lost += not scored
            if not scored or any(one.passed is False for one in scores):
                passed.discard((outcome.attempt.key.sample_id, outcome.attempt.key.trial))
    good = [one for one in samples if (one.id, one.trial or 0) in passed]
    if not good:
        hint = "take conversations that went well, or name a label that says so: --label good"
        raise UsageError(
            f"none of {count(len(samples), 'conversation')} passes as it is, so that no defect can be put into one; "
            f"{f'{lost:,} have no score, and viva show says why' if lost else hint}"
        )
    return good


def _is_good(sample: Sample, label: str, good_from: float | None) -> bool:
    try:
        ratings = ratings_at(sample.labels, label)
    except ValueError as error:
        raise UsageError(f"{sample.id}: {error}") from error
    if ratings is None:
        return False
    if not ratings.boolean and good_from is None:
        raise UsageError(f"labels.{label} is a number: say from which one a conversation is good, as in --good-from 4")
    return ratings.good(good_from) is True


def _kind(metric: Named) -> str:
    return metric if isinstance(metric, str) else str(metric["metric"])


def _score_name(metric: Named) -> str:
    return (
        short_name(_kind(metric)) if isinstance(metric, str) else str(metric.get("name") or short_name(_kind(metric)))
    )


def _names(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def _print(found: MetricTest, *, as_json: bool, markdown: bool) -> None:
    if as_json:
        print_json(found.model_dump_json(indent=2))
        return
    for line in (markdown_lines if markdown else terminal_lines)(found):
        out().print(line, soft_wrap=True, markup=False, highlight=False)
