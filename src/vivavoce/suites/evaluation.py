"""Evaluating recorded conversations in Python: a list, a dataset, a file or a stream, with any metrics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.grading.asked import Asked
from vivavoce.grading.call_mistakes import check_call_options
from vivavoce.grading.expect import ExpectMetric
from vivavoce.grading.grader import Grader
from vivavoce.grading.metrics import metric_grader
from vivavoce.messages import Message
from vivavoce.metrics.evaluation import Named, OneOrMore, as_several, choose
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import asking, with_judges
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.pacing.limits import Budget, affordable
from vivavoce.pacing.loops import wait_for
from vivavoce.records.run import GIVEN_IN_PYTHON, Listener, Run
from vivavoce.run.execution import notebook_listeners
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scoring
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.samples.conversations import GivenRow, GivenRows, as_rows, given_samples
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.settings import settings
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.suites.expectations import Assertions, asks_judge, expectations_of, with_assertions, without_expect
from vivavoce.suites.grading_spec import JudgeSpec, MetricGraderSpec
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.plan import IN_ONE_RUN

Conversations = str | Path | GivenRow | Iterable[Message] | GivenRows
"""A file of conversations, an iterable of conversations, or one: a row, a history, or the list of its messages."""


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """Recorded conversations, and metrics as the caller names them; `judge` is for the metrics without one.

    `metric_assertions` is what the assertions of the rows ask of metrics.
    """

    name: str
    data: str | Path | GivenRows
    metric_refs: Sequence[Named]
    metrics: Sequence[BaseMultiTurnMetric]
    judge: ModelLike | None
    concurrency: int
    offline: bool
    metric_assertions: Mapping[str, Asked]

    def build(self, budget: Budget, answers: ReplyStore | None) -> Experiment:
        """Return the experiment.

        Raises:
            UsageError: a metric has no judge, a judge cannot be opened, or calls are limited that cannot be counted.
        """
        judges = _Judges(JudgeOpener(budget, answers, self.offline, self.concurrency), self.judge)
        metrics = tuple(self._with_judge(metric, judges) for metric in self.metrics)
        for metric in metrics:
            if any(part.model is None for part in asking(metric)):
                raise UsageError(f"the metric '{metric.name}' needs a judge: give a model, or set VIVAVOCE_JUDGE")
        graders = tuple(self._grader(metric) for metric in metrics)
        check_call_options(graders, self._known_samples)
        return Experiment(
            name=self.name,
            samples=self._samples(),
            scoring=Scoring(graders, opened=metrics),
            limits=Limits(affordable(self.concurrency)),
            description=Description(self._spec(), Path(), "evaluation"),
        )

    def _samples(self) -> Samples:
        rows = _file_rows(self.data) if isinstance(self.data, str | Path) else self.data
        count = len(rows) if isinstance(rows, Sized) else None
        graded = any(isinstance(metric, ExpectMetric) for metric in self.metrics)
        check = Assertions().check if graded else without_expect
        return Samples(partial(given_samples, rows, check), count, GIVEN_IN_PYTHON)

    def _known_samples(self) -> Iterable[Sample]:
        """Return the samples, as far as they can be read before the run: none of a stream, which is read only once."""
        if isinstance(self.data, str | Path):
            return read_samples(self.data)
        return cast("Iterable[Sample]", given_samples(self.data)) if isinstance(self.data, Sequence) else ()

    def _with_judge(self, metric: BaseMultiTurnMetric, judges: _Judges) -> BaseMultiTurnMetric:
        """Return a metric with its judge; one of assertions has none where none is asked.

        Raises:
            UsageError: assertions ask a judge, and there is none.
        """
        if not isinstance(metric, ExpectMetric):
            return with_judges(metric, judges.choose)
        if not self._asks(metric):
            return metric
        judged_metric = with_judges(metric, judges.choose)
        if judged_metric.model is None:
            raise UsageError("rows have assertions that need a judge: give a model, or set VIVAVOCE_JUDGE")
        return judged_metric

    def _asks(self, metric: BaseMultiTurnMetric) -> bool:
        return metric.may_ask and asks_judge(self.metric_assertions)

    def _grader(self, metric: BaseMultiTurnMetric) -> Grader:
        return (
            metric.asking(self.metric_assertions)
            if isinstance(metric, ExpectMetric)
            else metric_grader(metric.name, metric)
        )

    def _spec(self) -> dict[str, Any]:
        """Return the evaluation as data, with the keys of a suite."""
        place = str(self.data) if isinstance(self.data, str | Path) else f"({GIVEN_IN_PYTHON})"
        return {
            "name": self.name,
            "dataset": {"path": place, "fields": {}},
            "driver": "replay",
            "graders": {
                metric.name: _grader_spec(name, metric, self.judge, asks=metric.judged or self._asks(metric))
                for name, metric in zip(self.metric_refs, self.metrics, strict=True)
            },
            "agreement": [],
            "trials": 1,
            "max_concurrent": self.concurrency,
        }


@dataclass(slots=True)
class _Judges:
    """The judges of a run, each opened once and only when a metric needs it."""

    opener: JudgeOpener
    judge: ModelLike | None
    opened: dict[str | int, Model] = field(default_factory=dict[str | int, Model])

    def choose(self, own: Model | None) -> Model | None:
        """Return the judge of a metric: this one, or the default if it has none."""
        judge = self.judge if own is None else own
        if judge is None:
            return None
        key = judge if isinstance(judge, str) else id(judge)
        if key not in self.opened:
            self.opened[key] = self.opener.open(judge if isinstance(judge, str) else as_model(judge), JudgeSpec())
        return self.opened[key]


async def aevaluate(
    data: Conversations,
    metrics: OneOrMore[Named],
    *,
    model: ModelLike | None = None,
    name: str = "evaluation",
    max_concurrent: int = 64,
    store: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    options: RunOptions | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Async version of `evaluate`; `listeners` hear of each conversation as it ends."""
    options = _check_options(options or RunOptions())
    judge = settings().judge if model is None else model
    rows = data if isinstance(data, str | Path) else as_rows(data)
    expectations = expectations_of(rows, judged=judge is not None)
    metric_refs = with_assertions(as_several(metrics), expectations)
    evaluation = _Evaluation(
        name,
        rows,
        metric_refs,
        _select_metrics(metric_refs),
        judge,
        max_concurrent,
        options.replay,
        expectations.metric_assertions,
    )
    with Store.open(store or settings().store) as opened:
        resumed = _load_resumable(opened.run(resume)) if resume else None
        run = ExperimentRun(evaluation.build, opened, options, [*listeners, *notebook_listeners()], resumed=resumed)
        try:
            return await run.execute()
        except Exception as error:
            if run.begun is None:
                raise
            hint = f"finished conversations are stored; continue with resume='{run.begun.id}'"
            if isinstance(error, UsageError):
                raise UsageError(*error.problems, hint) from error
            error.add_note(hint)
            raise


def evaluate(
    data: Conversations,
    metrics: OneOrMore[Named],
    *,
    model: ModelLike | None = None,
    name: str = "evaluation",
    max_concurrent: int = 64,
    store: str | os.PathLike[str] | None = None,
    resume: str | None = None,
    options: RunOptions | None = None,
) -> RunResult:
    """Measure recorded conversations with metrics, and return the summary; the store keeps every result.

    It works where an event loop is running already, as in a notebook.

    Args:
        data: a file, or rows with `messages` and whatever the metrics need of each, such as `id` and `goal`; or one
            conversation: such a row, a `ConversationHistory`, or the list of its messages.
        metrics: one or several: metrics, names of them, or names with options such as
            `{"metric": "fuzzy_ratio", "threshold": 0.9}`.
        model: the judge of the metrics without one; by default that of VIVAVOCE_JUDGE.
        name: what the run is called.
        max_concurrent: how many conversations are measured at a time.
        store: where records go, the workspace's own unless named.
        resume: an interrupted run to complete, with the same data and metrics.
        options: limits, which need the judge by its name, and the cache; the others are for suites.

    Raises:
        UsageError: a metric is unknown, the file cannot be read, or a row is not a conversation.
    """
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


def _check_options(options: RunOptions) -> RunOptions:
    """Return options of an evaluation.

    Raises:
        UsageError: they filter conversations, which is for the caller to do.
    """
    if options.batch:
        raise UsageError(IN_ONE_RUN)
    for name in ("trials", "max_samples", "tags", "samples", "max_concurrent"):
        if getattr(options, name) is not None:
            where = (
                "an argument of `evaluate`"
                if name == "max_concurrent"
                else "not needed, because the caller chooses the rows"
            )
            raise UsageError(f"RunOptions.{name} is for suites; here it is {where}")
    return options


def _select_metrics(metrics: Sequence[Named]) -> list[BaseMultiTurnMetric]:
    """Return the metrics; those named by the caller have no judge yet.

    Raises:
        UsageError: there is no metric, one is not a metric, or two have the same name.
    """
    if not metrics:
        raise UsageError("evaluate needs at least one metric; see: viva validate list metrics")
    return choose(metrics)


def _file_rows(path: str | Path) -> Iterator[GivenRow]:
    """Return the rows of a file; the first is read here and now, so that a wrong path begins no run."""
    rows = read_samples(path)
    return chain(list(islice(rows, 1)), rows)


def _load_resumable(run: Run) -> Run:
    """Return a run that can be resumed here.

    Raises:
        UsageError: it is the run of a suite, or it is finished.
    """
    if run.option("dataset") != GIVEN_IN_PYTHON:
        raise UsageError(f"run {run.id} is the run of a suite; continue with: viva run --resume {run.id}")
    if run.status == "finished":
        raise UsageError(f"run {run.id} is finished; there is nothing to resume")
    return run


_RECORDED = ("threshold", "scope", "config", "extractor", "extractor_config", "temperature", "settings")
"""The options of a named metric that the record keeps."""


def _grader_spec(
    metric_ref: Named, metric: BaseMultiTurnMetric, judge: ModelLike | None, *, asks: bool
) -> dict[str, Any]:
    """Return a metric as data; a metric object cannot be created again from it, and its name says so."""
    how: Mapping[str, Any] = metric_ref if isinstance(metric_ref, Mapping) else {}
    name = (
        metric_ref
        if isinstance(metric_ref, str)
        else how.get("metric", f"({GIVEN_IN_PYTHON}: {type(metric).__name__})")
    )
    own = (metric.model if metric.model is not None else judge) if asks else None
    model = own if isinstance(own, str) or own is None else as_model(own).name
    options: dict[str, Any] = {option: value for option, value in how.items() if option in _RECORDED}
    spec = MetricGraderSpec.model_construct(kind="metric", metric=name, model=model, **options)
    return spec.model_dump(mode="json", exclude_none=True)
