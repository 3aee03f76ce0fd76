"""The experiment of `viva watch`: conversations as they come in, and the graders that judge them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from functools import partial
from typing import Any

from vivavoce.grading.gates import Gate
from vivavoce.metrics.config import Scope
from vivavoce.models.cache import Replies
from vivavoce.pacing.limits import Budget
from vivavoce.records.run import WATCHED, Listener, Run
from vivavoce.run.experiment import Description, Experiment, Limits, Samples
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder
from vivavoce.suites.command_line import metrics_suite
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, dump_spec, filled_suite, suite_record_from
from vivavoce.suites.metric_names import MetricRef

SOURCE = "watch-traces"
"""The command that describes the suite."""

Feed = Callable[[], AsyncIterable[Sample]]
_GRADING = ("graders", "reward", "agreement", "gate")


def watching_metrics(
    name: str, metrics: Sequence[MetricRef], model: str | None, scope: Scope | None, max_concurrent: int
) -> Suite:
    """Return the suite that measures what comes in with metrics.

    Raises:
        UsageError: a metric is unknown or named twice, or needs a judge and none is named.
    """
    return metrics_suite(_describe(name, max_concurrent), metrics, model, scope)


def watching_suite(name: str, suite: Suite, max_concurrent: int) -> Suite:
    """Return the suite that judges what comes in with the graders, the reward and the gate of another suite.

    Raises:
        UsageError: something in it cannot be used.
    """
    spec = dump_spec(suite)
    grading = {key: spec[key] for key in _GRADING if key in spec}
    data = {**_describe(name, max_concurrent), "driver": "replay", **grading}
    return filled_suite(suite_record_from(data, SOURCE), suite.base, SOURCE)


def gate_of(suite: Suite) -> Gate | None:
    """Return the gate of a suite that judges what comes in, None if none is written in it."""
    return Builder(suite, JudgeOpener(Budget()).open).written_gate()


def watching_run(
    suite: Suite,
    feed: Feed,
    options: RunOptions,
    *,
    store: Store,
    run_id: str,
    listeners: Sequence[Listener] = (),
    resumed: Run | None = None,
) -> ExperimentRun:
    """Return a run over what `feed` yields until it ends, ready to execute."""
    build = partial(_build, suite, feed, options)
    return ExperimentRun(build, store, options, listeners, resumed=resumed, run_id=run_id)


def _describe(name: str, max_concurrent: int) -> dict[str, Any]:
    return {"name": name, "dataset": {"path": f"({WATCHED})"}, "max_concurrent": max_concurrent}


def _build(suite: Suite, feed: Feed, options: RunOptions, budget: Budget, answers: Replies | None) -> Experiment:
    judges = JudgeOpener(budget, answers, options.replay, suite.spec.max_concurrent, base=suite.base)
    return Experiment(
        name=suite.spec.name,
        samples=Samples(feed, None, WATCHED, "incoming traces"),
        scoring=Builder(suite, judges.open).scoring(),
        limits=Limits(suite.spec.max_concurrent),
        description=Description(dump_spec(suite), suite.base, suite.source),
    )
