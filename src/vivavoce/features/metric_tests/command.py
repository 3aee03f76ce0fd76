"""`viva metrics`: tests of metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from vivavoce.cli.judge import (
    ExportOption,
    FromOption,
    ImportOption,
    exported,
    import_answers,
    named_judge,
    print_export,
)
from vivavoce.cli.options import CostOption, NoCacheOption, ReplayOption, named_paths
from vivavoce.cli.output import StoreOption, existing, notes, out, print_json, print_lines, store_of
from vivavoce.cli.progress import RunProgress, execute
from vivavoce.cli.validate import forecast_line
from vivavoce.errors import UsageError
from vivavoce.features.metric_tests.records import (
    MetricScores,
    MetricTest,
    Planned,
    collect_scores,
    figures_of,
    version_of,
)
from vivavoce.features.metric_tests.report import gate_lines, inconclusive, markdown_lines, terminal_lines
from vivavoce.features.metric_tests.versions import OWN, as_they_are, chosen_defects, require_recorded, versions
from vivavoce.files.paths import whole_file
from vivavoce.records.score import conversation_label
from vivavoce.report.text import count, record_json
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.settings import WORKSPACE
from vivavoce.stats.raters import ratings_at
from vivavoce.store.store import Store
from vivavoce.suites.check import Forecast, check_suite
from vivavoce.suites.command_line import judging_suite
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import MetricRef, read_metrics, short_name

INCONCLUSIVE = 3
"""The exit code of a test in which something has no score."""


class Chosen(NamedTuple):
    """Which conversations are read, from a file or the package's own, and the label that says which are good."""

    path: Path | None
    label: str | None
    good_from: float | None
    limit: int | None
    fields: Mapping[str, str]
    format: str | None


def chosen_conversations(chosen: Chosen) -> tuple[list[Sample], list[Sample]]:
    """Return all conversations, and those that the label calls good; without a label all of them.

    Raises:
        UsageError: there is none, or the label is missing.
    """
    read = read_samples(chosen.path or OWN, fields=chosen.fields, limit=chosen.limit, format=chosen.format)
    samples = list(require_recorded(read))
    label = chosen.label
    good = samples if label is None else [sample for sample in samples if _is_good(sample, label, chosen.good_from)]
    if not samples:
        raise UsageError(f"{chosen.path} has no conversations")
    if label is not None and all(ratings_at(sample.labels, label) is None for sample in samples):
        raise UsageError(f"no row has labels.{label}; name a label of the conversations, as in --label good")
    if not good:
        raise UsageError(f"labels.{label} marks no conversation good; defects are planted only in good conversations")
    return samples, good


@dataclass(frozen=True, slots=True)
class MetricRuns:
    """Runs of the versions of conversations, judged by each judge; `defects` names some, separated by commas."""

    metrics: Sequence[MetricRef]
    judges: Sequence[str | None]
    defects: str | None
    seed: int
    max_concurrent: int
    options: RunOptions
    quiet: bool

    def forecasts(self, good: Sequence[Sample]) -> Iterator[Forecast]:
        """Yield what each judge would be asked."""
        path = _file(chain(as_they_are(good), self._versions(good)))
        for judge in self.judges:
            yield check_suite(self._suite(path, judge), self.options, keys_needed=True)

    def figures(
        self, store: Store, samples: Sequence[Sample], good: Sequence[Sample], *, judged: bool, to: Path | None
    ) -> MetricTest | None:
        """Return what the test shows, or None where the requests were written to a file instead.

        Where it is `judged` which conversations are good, they are judged as they are first.
        """
        whole: list[RunResult] = []
        unscored = 0
        if judged:
            unchanged = _file(as_they_are(good))
            if to is not None and self._exported(unchanged, to, store):
                return None
            whole = [self._run(unchanged, judge, store) for judge in self.judges]
            good, unscored = _select_passing(good, whole)
        rows = self._versions(good) if judged else chain(as_they_are(good), self._versions(good))
        path = _file(rows)
        if to is not None:
            self._exported(path, to, store)
            return None
        results = [self._run(path, judge, store) for judge in self.judges]
        scores = [
            one
            for number, judge in enumerate(self.judges)
            for one in self._answered([*whole[number : number + 1], results[number]], judge, good)
        ]
        planned = Planned(self._kinds, self._defects, by_name=bool(self.defects))
        left_out = len(samples) - len(good)
        return figures_of(scores, planned, conversations=len(good), left_out=left_out, unscored=unscored)

    @property
    def _kinds(self) -> dict[str, str]:
        """The metric behind each name of scores."""
        return {_score_name(metric): _kind(metric) for metric in self.metrics}

    @property
    def _defects(self) -> list[str]:
        named = [one.strip() for one in (self.defects or "").split(",") if one.strip()]
        return chosen_defects(self._kinds.values(), named)

    def _versions(self, good: Iterable[Sample]) -> Iterator[dict[str, Any]]:
        return versions(good, self._defects, self.seed)

    def _suite(self, path: Path, judge: str | None) -> Suite:
        name = f"test of {', '.join(self._kinds)}"
        return judging_suite(path, self.metrics, judge, name=name[:100], max_concurrent=self.max_concurrent)

    def _run(self, path: Path, judge: str | None, store: Store) -> RunResult:
        """Judge every row; an answer that is kept is not asked for again."""
        progress = RunProgress(notes(), self.quiet)
        result = execute(suite_run(self._suite(path, judge), self.options, store=store, listeners=[progress]), progress)
        if result.stopped_by is not None:
            again = "repeat the command to go on; kept answers are not asked for again"
            notes().print(f"stopped: {result.stopped_by}; {again}", soft_wrap=True)
            raise typer.Exit(result.exit_code or INCONCLUSIVE)
        return result

    def _answered(self, results: Sequence[RunResult], judge: str | None, good: Sequence[Sample]) -> list[MetricScores]:
        """Return the scores of one judge, of all its runs, for conversations that are good."""
        names = {conversation_label(one.id, one.trial or 0) for one in good}
        outcomes = (one for result in results for one in result.outcomes() if version_of(one).of in names)
        return collect_scores(outcomes, results[-1].run.id, dict.fromkeys(self._kinds, judge))

    def _exported(self, path: Path, to: Path, store: Store) -> int:
        """Write the requests without an answer, and return how many there are."""
        suite = self._suite(path, self.judges[0])
        export = exported(suite, named_judge(self.judges[0]), to, store, self.options)
        if export.questions:
            print_export(export)
        return export.questions


def _file(rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows to a file that is named after what is in it, and return its path."""
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "backslashreplace")
    path = WORKSPACE / "metric-tests" / f"{blake2b(data, digest_size=8).hexdigest()}.jsonl"
    if not path.exists():
        with whole_file(path) as part:
            part.write_bytes(data)
    return path


def _select_passing(samples: Sequence[Sample], results: Sequence[RunResult]) -> tuple[list[Sample], int]:
    """Return the conversations that no metric of any run fails, and how many have an error instead of a score.

    Raises:
        UsageError: there is none.
    """
    failed: set[tuple[str, int]] = set()
    lost: set[tuple[str, int]] = set()
    for result in results:
        for outcome in result.outcomes():
            key, scores = (outcome.attempt.key.sample_id, outcome.attempt.key.trial), outcome.scores.values()
            lost |= {key} if any(score.state == "error" for score in scores) else set()
            judged = any(score.passed is not None for score in scores)
            failed |= {key} if not judged or any(score.passed is False for score in scores) else set()
    good = [sample for sample in samples if (sample.id, sample.trial or 0) not in failed | lost]
    if good:
        return good, len(lost)
    if lost:
        runs = " and ".join(f"viva show {result.run.id}" for result in results)
        raise UsageError(
            f"no conversation passes: {len(lost):,} of {count(len(samples), 'conversation')} ended in an error; "
            f"see {runs}"
        )
    raise UsageError(
        f"none of {count(len(samples), 'conversation')} passes before a defect is planted; "
        "use conversations that went well, or name the label that marks them: --label good"
    )


def _is_good(sample: Sample, label: str, good_from: float | None) -> bool:
    try:
        ratings = ratings_at(sample.labels, label)
    except ValueError as error:
        raise UsageError(f"{sample.id}: {error}") from error
    if ratings is None:
        return False
    if not ratings.boolean and good_from is None:
        raise UsageError(f"labels.{label} is a number; set the lowest good value, such as --good-from 4")
    return ratings.good(good_from) is True


def _kind(metric: MetricRef) -> str:
    return metric if isinstance(metric, str) else str(metric["metric"])


def _score_name(metric: MetricRef) -> str:
    return (
        short_name(_kind(metric)) if isinstance(metric, str) else str(metric.get("name") or short_name(_kind(metric)))
    )


Metrics = Annotated[
    str,
    typer.Argument(help="Metrics, separated by commas, as in viva judge --metrics. See: viva validate list metrics"),
]
JudgesOption = Annotated[
    list[str] | None,
    typer.Option(help="The model that judges; default: VIVAVOCE_JUDGE. Repeat it to compare judges."),
]
OnOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Recorded conversations that went well; default: ten built-in ones."),
]
LabelOption = Annotated[
    str | None,
    typer.Option(help="Use only conversations that this label calls good; default: those that all judges pass."),
]
GoodFromOption = Annotated[
    float | None, typer.Option(help="With --label: the number at or above which a conversation is good.")
]
DefectsOption = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Only these defects, separated by commas. See: viva validate list defects"),
]
DetectionOption = Annotated[
    float | None, typer.Option(min=0.0, max=1.0, help="Fail if the share of detected defects is below this.")
]
AlarmsOption = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="Fail if the share of harmless edits that change a score is above this."),
]
FieldsOption = Annotated[
    list[str] | None,
    typer.Option(help="Map a field to another column, such as goal=metadata.wish; repeat for more."),
]


def command(
    what: Annotated[Literal["test"], typer.Argument(help="The action.")],
    metrics: Metrics,
    *,
    judge: JudgesOption = None,
    on: OnOption = None,
    label: LabelOption = None,
    good_from: GoodFromOption = None,
    defects: DefectsOption = None,
    min_detection: DetectionOption = None,
    max_false_alarms: AlarmsOption = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Only the first N conversations.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="The seed that decides where a defect is placed.")
    ] = 0,
    from_: FromOption = None,
    field: FieldsOption = None,
    max_concurrent: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum concurrent conversations.")] = 64,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Maximum number of judge calls per run.")] = None,
    max_cost: CostOption = None,
    no_cache: NoCacheOption = False,
    replay: ReplayOption = False,
    export_requests: ExportOption = None,
    import_responses: ImportOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything and count the calls without making any.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the figures as Markdown.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    store: StoreOption = None,
) -> None:
    """Plant known defects in good conversations, and measure whether metrics detect them.

    Code, not a model, changes each conversation: a wrong argument, a forgotten fact, an insult, a loop and more, one at
    a time. A metric should fail these, and name the turn. Harmless edits of the same conversations (other names, the
    order of keys, Markdown, padding, flattery) should not change a score. Only good conversations are changed: those
    that --label calls good, or else those that all judges pass. Every answer is cached, so that a rerun costs
    nothing.

    Exit codes: 0 done, 1 --min-detection or --max-false-alarms not met, 2 wrong usage, 3 inconclusive (an error, or
    nothing to compare), 130 interrupted.
    """
    judges: list[str | None] = [*dict.fromkeys(judge or ())] or [None]
    _check(judges, label, good_from, export_requests or import_responses, as_json=as_json, markdown=markdown)
    offline = replay or import_responses is not None or export_requests is not None
    options = RunOptions(max_calls=max_calls, max_cost=max_cost, cache=not no_cache, replay=offline)
    chosen = Chosen(
        None if on is None else existing(on), label, good_from, max_samples, named_paths(field or []), from_
    )
    test = MetricRuns(read_metrics(metrics), judges, defects, seed, max_concurrent, options, quiet)
    samples, good = chosen_conversations(chosen)
    if dry_run:
        for forecast in test.forecasts(good):
            out().print(forecast_line(forecast))
        return
    with Store.open(store_of(store)) as opened:
        if import_responses is not None:
            import_answers(existing(import_responses), opened, named_judge(judges[0]))
        found = test.figures(opened, samples, good, judged=label is None, to=export_requests)
    if found is None:
        return
    _print(found, as_json=as_json, markdown=markdown)
    failed = list(gate_lines(found, min_detection, max_false_alarms))
    for line in failed:
        notes().print(line, soft_wrap=True, markup=False, highlight=False)
    unsure = inconclusive(found, min_detection, max_false_alarms)
    raise typer.Exit(1 if failed else INCONCLUSIVE if unsure else 0)


def _check(
    judges: list[str | None],
    label: str | None,
    good_from: float | None,
    file: Path | None,
    *,
    as_json: bool,
    markdown: bool,
) -> None:
    if good_from is not None and label is None:
        raise UsageError("--good-from needs --label")
    if as_json and markdown:
        raise UsageError("--json and --markdown cannot be combined")
    if len(judges) > 1 and file is not None:
        raise UsageError("--export-requests and --import-responses are for one judge at a time")


def _print(found: MetricTest, *, as_json: bool, markdown: bool) -> None:
    if as_json:
        print_json(record_json(found))
        return
    print_lines(markdown_lines(found) if markdown else terminal_lines(found))
