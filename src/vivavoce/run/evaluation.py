"""Evaluating recorded conversations in Python: from a list, a dataset, a file or a stream, with metrics of any kind."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.grading.metrics import metric_grader
from vivavoce.metrics.evaluation import Named, choose
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.cache import CachedModel
from vivavoce.models.homemade import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.models.names import open_model
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.events import Listener
from vivavoce.run.claim import claimed
from vivavoce.run.plan import RECORDED, GivenPlan, GivenRow, RunOptions
from vivavoce.run.result import RunResult
from vivavoce.run.suite_run import SuiteRun, kept_answers
from vivavoce.samples.rows import read_samples
from vivavoce.settings import settings
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.suites.build import Scoring
from vivavoce.suites.document import Document
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import DatasetSpec, MetricGraderSpec, SuiteSpec
from vivavoce.wire.http import Limits

Conversations = str | Path | Iterable[GivenRow] | AsyncIterable[GivenRow]
"""A file of conversations, or the conversations one after the other."""


@dataclass
class Evaluation(SuiteRun):
    """A run over conversations that are given, with metrics that are given."""

    rows: Iterable[GivenRow] | AsyncIterable[GivenRow] = ()
    metrics: list[BaseMultiTurnMetric] = field(default_factory=list[BaseMultiTurnMetric])

    async def execute(self) -> RunResult:
        """Measure every conversation, and return what came out.

        Raises:
            UsageError: a row is no conversation; those before it are kept.
        """
        plan = GivenPlan(self.rows, self.suite.spec.max_concurrent)
        scoring = Scoring(tuple(metric_grader(metric.name, metric) for metric in self.metrics), None, None)
        async with kept_answers(self.store, cache=self.options.cache or self.options.replay) as answers:
            opened = [metric.model for metric in self.metrics]
            try:
                if answers is not None:
                    self._keep_answers(answers)
                with claimed(self.store.place, self._run_id):
                    return await self._hold_all(plan, scoring, {RECORDED: None}, plan.planned)
            finally:
                for metric, model in zip(self.metrics, opened, strict=True):
                    await metric.close()
                    metric.model = model

    def _keep_answers(self, answers: ReplyStore) -> None:
        for metric in self.metrics:
            if metric.model is not None:
                metric.model = CachedModel(metric.model, answers, offline=self.options.replay)


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
        options: limits and the cache; what a suite would say besides does not apply.
        listeners: what hears of each conversation as it ends.

    Raises:
        UsageError: a metric is unknown, the file cannot be read, or a row is no conversation.
    """
    with Store.open(store or settings().store) as opened:
        run = Evaluation(
            _suite(name, data, max_concurrent),
            options or RunOptions(),
            opened,
            listeners,
            opened.run(resume) if resume else None,
        )
        run.rows = read_samples(data) if isinstance(data, str | Path) else data
        run.metrics = choose(metrics, _judge(model, run))
        run.suite.spec.graders.update({metric.name: _spec(metric, metrics) for metric in run.metrics})
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


def _judge(model: ModelLike | None, run: Evaluation) -> Model | None:
    """Return the judge; one that is given by name has as many connections, and the budget, of the run."""
    model = settings().judge if model is None else model
    if isinstance(model, str):
        return open_model(model, limits=Limits(concurrency=run.suite.spec.max_concurrent), budget=run.budget)
    if run.options.max_calls is not None or run.options.max_cost is not None:
        raise UsageError("a limit on calls or cost needs the judge by its name; one that is given has its own budget")
    return None if model is None else as_model(model)


def _suite(name: str, data: Conversations, max_concurrent: int) -> Suite:
    """Return the record of what is run: nobody wrote it as a suite."""
    place = str(data) if isinstance(data, str | Path) else "(given in Python)"
    spec = SuiteSpec.model_construct(
        name=name, dataset=DatasetSpec(path=place), driver="replay", graders={}, max_concurrent=max_concurrent
    )
    return Suite(spec, Document(Path("evaluation"), {}), None)


def _spec(metric: BaseMultiTurnMetric, metrics: Sequence[Named]) -> MetricGraderSpec:
    """Return the record of a metric; one that was given made cannot be made again from it, and its name says so."""
    named = metric.name in metrics
    model = metric.model.name if metric.model is not None else None
    return MetricGraderSpec(
        kind="metric", metric=metric.name if named else f"(given in Python: {type(metric).__name__})", model=model
    )
