"""Evaluating recorded conversations in Python: from a list, a dataset, a file or a stream, with metrics of any kind."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.grading.metrics import metric_grader
from vivavoce.metrics.evaluation import Named, choose
from vivavoce.metrics.judges import with_judges
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.homemade import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.events import Listener
from vivavoce.records.run import Run
from vivavoce.run.plan import GIVEN_IN_PYTHON, RECORDED, GivenPlan, GivenRow, RunOptions
from vivavoce.run.result import RunResult
from vivavoce.run.suite_run import SuiteRun, kept_answers
from vivavoce.samples.rows import read_samples
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.build import Scoring
from vivavoce.suites.document import Document
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import DatasetSpec, JudgeSpec, MetricGraderSpec, SuiteSpec

Conversations = str | Path | Iterable[GivenRow] | AsyncIterable[GivenRow]
"""A file of conversations, or the conversations one after the other."""


@dataclass
class Evaluation(SuiteRun):
    """A run over conversations that are given, with metrics that are given; `judge` is for those that have none."""

    rows: Iterable[GivenRow] | AsyncIterable[GivenRow] = ()
    metrics: Sequence[BaseMultiTurnMetric] = ()
    judge: ModelLike | None = None

    async def execute(self) -> RunResult:
        """Measure every conversation, and return what came out.

        Raises:
            UsageError: a limit cannot be kept, or a row is no conversation; those before it are kept.
            Exception: whatever the source of the rows raised; those before it are kept as well.
        """
        concurrency = self.suite.spec.max_concurrent
        plan = GivenPlan(self.rows, concurrency)
        async with kept_answers(self.store, cache=self.options.cache or self.options.replay) as answers:
            asked = _Asked(JudgeOpener(self.budget, answers, self.options.replay, concurrency), self.judge)
            metrics = [with_judges(metric, asked.choose) for metric in self.metrics]
            scoring = Scoring(tuple(metric_grader(metric.name, metric) for metric in metrics), None, None)
            try:
                with self.store.claimed(self._run_id):
                    return await self._hold_all(plan, scoring, {RECORDED: None}, plan.planned)
            except Exception as error:
                if self.workers is None:
                    raise
                kept = f"what was measured before is kept; go on with resume='{self._run_id}'"
                if isinstance(error, UsageError):
                    raise UsageError(*error.problems, kept) from error
                error.add_note(kept)
                raise
            finally:
                for metric in metrics:
                    await metric.close()


@dataclass
class _Asked:
    """The judges of a run, each opened once and only when a metric asks it."""

    opener: JudgeOpener
    judge: ModelLike | None
    opened: dict[str | int, Model] = field(default_factory=dict[str | int, Model])

    def choose(self, own: Model | None) -> Model | None:
        """Return what a metric asks that has this judge, or none of its own."""
        judge = self.judge if own is None else own
        if judge is None:
            return None
        key = judge if isinstance(judge, str) else id(judge)
        if key not in self.opened:
            self.opened[key] = self.opener.open(judge if isinstance(judge, str) else as_model(judge), JudgeSpec())
        return self.opened[key]


async def aevaluate(
    data: Conversations,
    metrics: Sequence[Named],
    *,
    model: ModelLike | None = None,
    name: str = "evaluation",
    max_concurrent: int = 64,
    store: str | None = None,
    resume: str | None = None,
    options: RunOptions | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Measure recorded conversations with metrics, and return the summary; the store keeps every result.

    Args:
        data: a file, or rows with `messages` and whatever the metrics need of each, such as `id` and `goal`.
        metrics: metrics, or names of them.
        model: the judge of the metrics that have none; that of VIVAVOCE_JUDGE unless it is given.
        name: what the run is called.
        max_concurrent: how many conversations are measured at a time.
        store: where records go, the workspace's own unless named.
        resume: a run that was interrupted, to do what is left of it with the same data and metrics.
        options: limits, which need the judge by its name, and the cache; the others are for suites.
        listeners: what hears of each conversation as it ends.

    Raises:
        UsageError: a metric is unknown, the file cannot be read, or a row is no conversation.
    """
    options = _checked(options or RunOptions())
    chosen, judge = _chosen(metrics), settings().judge if model is None else model
    with Store.open(store or settings().store) as opened:
        resumed = _resumed(opened.run(resume)) if resume else None
        suite = _suite(name, data, max_concurrent, _specs(metrics, chosen, judge))
        rows = _read(data) if isinstance(data, str | Path) else data
        run = Evaluation(suite, options, opened, listeners, resumed, rows=rows, metrics=chosen, judge=judge)
        return await run.execute()


def evaluate(
    data: Conversations,
    metrics: Sequence[Named],
    *,
    model: ModelLike | None = None,
    name: str = "evaluation",
    max_concurrent: int = 64,
    store: str | None = None,
    resume: str | None = None,
    options: RunOptions | None = None,
) -> RunResult:
    """Do as `aevaluate` and wait for it, also where an event loop is running already."""
    return wait_for(
        aevaluate(
            data,
            metrics,
            model=model,
            name=name,
            max_concurrent=max_concurrent,
            store=store,
            resume=resume,
            options=options,
        )
    )


def _checked(options: RunOptions) -> RunOptions:
    """Return options of an evaluation.

    Raises:
        UsageError: they choose among conversations, which the caller does.
    """
    for name in ("trials", "max_samples", "tags", "samples", "max_concurrent"):
        if getattr(options, name) is not None:
            where = "an argument of evaluate" if name == "max_concurrent" else "for the caller, who gives the rows"
            raise UsageError(f"options: {name} is for suites; here it is {where}")
    return options


def _chosen(metrics: Sequence[Named]) -> list[BaseMultiTurnMetric]:
    """Return the metrics, those that are given by name without a judge.

    Raises:
        UsageError: there is none, one is no metric, or two have one name.
    """
    if not metrics:
        raise UsageError("evaluate needs at least one metric; see: viva list metrics")
    for metric in metrics:
        _check_kind(metric)
    return choose(metrics)


def _check_kind(metric: object) -> None:
    if isinstance(metric, str | BaseMultiTurnMetric):
        return
    got = f"the class {metric.__name__}; make one of it" if isinstance(metric, type) else type(metric).__name__
    raise UsageError(f"a metric is given as such or by its name; got {got}")


def _read(path: str | Path) -> Iterator[GivenRow]:
    """Return the rows of a file, of which the first is read here and now, so that a wrong path begins no run."""
    rows = read_samples(path)
    return chain(list(islice(rows, 1)), rows)


def _resumed(run: Run) -> Run:
    """Return a run that can go on here.

    Raises:
        UsageError: it is that of a suite, or nothing is left of it.
    """
    if run.options["dataset"] != GIVEN_IN_PYTHON:
        raise UsageError(f"run {run.id} is that of a suite; go on with: viva run --resume {run.id}")
    if run.status == "finished":
        raise UsageError(f"run {run.id} is finished; nothing is left to resume")
    return run


def _suite(name: str, data: Conversations, max_concurrent: int, graders: dict[str, MetricGraderSpec]) -> Suite:
    """Return the record of what is run: nobody wrote it as a suite."""
    place = str(data) if isinstance(data, str | Path) else f"({GIVEN_IN_PYTHON})"
    spec = SuiteSpec.model_construct(
        name=name, dataset=DatasetSpec(path=place), driver="replay", graders=graders, max_concurrent=max_concurrent
    )
    return Suite(spec, Document(Path("evaluation"), {}), None)


def _specs(
    metrics: Sequence[Named], chosen: Sequence[BaseMultiTurnMetric], judge: ModelLike | None
) -> dict[str, MetricGraderSpec]:
    """Return the record of the metrics; one that was given made cannot be made again from it, and its name says so."""
    specs: dict[str, MetricGraderSpec] = {}
    for given, metric in zip(metrics, chosen, strict=True):
        named = given if isinstance(given, str) else f"({GIVEN_IN_PYTHON}: {type(metric).__name__})"
        own = metric.model if metric.model is not None else judge
        model = own if isinstance(own, str) or own is None else as_model(own).name
        specs[metric.name] = MetricGraderSpec.model_construct(
            kind="metric", metric=named, model=model if metric.judged else None
        )
    return specs
