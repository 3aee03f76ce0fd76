"""Evaluating one conversation with several metrics: a broken one is one error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, Unpack, cast

from vivavoce.errors import UsageError
from vivavoce.metrics.factory import Choice, choose_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric, Conversation, evaluation_input
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import Expected, MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage
from vivavoce.samples.table import Tabular
from vivavoce.validation import shows_options

Named = str | Choice | BaseMultiTurnMetric
"""A metric, its name, or its name with options as a mapping: `{"metric": "fuzzy_ratio", "threshold": 0.9}`."""

T = TypeVar("T")
OneOrMore = T | Sequence[T]
"""One metric, or several."""


class Known(Expected, total=False):
    """Fields of `MultiTurnEvaluationInput` besides the conversation and its goal."""

    instructions: str | None
    """How the conversation was to be led."""
    context: dict[str, Any] | None
    """Anything else that a metric asks for by name, such as `role` or `topics`."""


class Several(Protocol):
    """What measures a conversation by several metrics at once, as `JointJudge` does."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the metrics."""
        ...

    async def measured(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, MetricResult]:
        """Return the results by the names of the metrics; what breaks becomes a result."""
        ...

    async def close(self) -> None:
        """Close the connections of what it asks."""
        ...


class EvaluationReport(Tabular, Mapping[str, MetricResult]):
    """The results of several metrics for one conversation, by the names of the metrics, in the order given."""

    TABLES = ("metrics",)
    TABLES_FROM = "vivavoce.report.metric_tables:report_table"

    def __init__(self, results: Mapping[str, MetricResult]) -> None:
        self._results = dict(results)

    def __getitem__(self, name: str) -> MetricResult:
        """Return the result of a metric.

        Raises:
            KeyError: no metric has that name.
        """
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        lines = [f"  {name}: {_result_line(result)}" for name, result in self._results.items()]
        return "\n".join(["EvaluationReport", *lines])

    def _repr_html_(self) -> str:
        """Return the results for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:report_html")(self))

    def get_metric(self, name: str) -> MetricResult:
        """Return the result of a metric.

        Raises:
            KeyError: no metric has that name.
        """
        return self[name]

    @property
    def all_passed(self) -> bool:
        """Whether at least one metric passed, and every other that can pass did.

        An error and a skipped metric have not passed. A score that can neither pass nor fail, such
        as a count without a threshold, is left out; where nothing is left, the answer is no.
        """
        verdicts = [
            result.passed for result in self._results.values() if result.state != "scored" or result.passed is not None
        ]
        return bool(verdicts) and all(verdicts)

    @property
    def usage(self) -> Usage | None:
        """The usage of all of them together, None where no model reported any."""
        return spent(self._results.values())


def spent(results: Iterable[MetricResult]) -> Usage | None:
    """Return the usage of results together, None where none has any."""
    usages = [result.usage for result in results if result.usage is not None]
    return sum(usages, Usage()) if usages else None


@shows_options
def evaluate_conversation(
    conversation: Conversation,
    metrics: OneOrMore[Named | Several],
    goal: str | None = None,
    *,
    model: ModelLike | None = None,
    **known: Unpack[Known],
) -> EvaluationReport:
    """Measure one conversation with several metrics, as objects or by name; works inside a running loop too.

    `model` judges for the metrics given by name. Metrics that share one call are given as one `JointJudge`.

    Raises:
        UsageError: a name is unknown, or two metrics have the same.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    return wait_for(evaluate_input(evaluation_input(conversation, goal=goal, **known), metrics, model, close=True))


@shows_options
async def aevaluate_conversation(
    conversation: Conversation,
    metrics: OneOrMore[Named | Several],
    goal: str | None = None,
    *,
    model: ModelLike | None = None,
    **known: Unpack[Known],
) -> EvaluationReport:
    """Async version of `evaluate_conversation`; connections stay open for the next one."""
    return await evaluate_input(evaluation_input(conversation, goal=goal, **known), metrics, model)


async def evaluate_input(
    metric_input: MultiTurnEvaluationInput,
    metrics: OneOrMore[Named | Several],
    model: ModelLike | None = None,
    *,
    close: bool = False,
) -> EvaluationReport:
    """Measure an input with several metrics; `close` closes the connections of the judges at the end.

    Raises:
        UsageError: a name is unknown, or two metrics have the same.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    judge = None if model is None else as_model(model)
    chosen = [
        choose_metric(metric, judge) if isinstance(metric, str | Mapping) else metric for metric in as_several(metrics)
    ]
    _check_names([name for metric in chosen for name in _names(metric)])
    try:
        measured = await asyncio.gather(*(_measured(metric, metric_input) for metric in chosen))
    finally:
        for metric in chosen if close else ():
            await metric.close()
    return EvaluationReport({name: result for results in measured for name, result in results.items()})


def as_several(metrics: OneOrMore[T]) -> Sequence[T]:
    """Return metrics as several; one may be given alone."""
    alone = isinstance(metrics, str | Mapping) or not isinstance(metrics, Iterable)
    return [cast("T", metrics)] if alone else cast("Sequence[T]", metrics)


def choose(metrics: Sequence[Named], model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return metrics, making those that are given by name; `model` is their judge.

    Raises:
        UsageError: a name is unknown, something else is given, or two metrics have the same name.
    """
    judge = None if model is None else as_model(model)
    for metric in metrics:
        _check_kind(metric)
    chosen = [choose_metric(metric, judge) if isinstance(metric, str | Mapping) else metric for metric in metrics]
    _check_names([metric.name for metric in chosen])
    return chosen


def _check_kind(metric: object) -> None:
    if isinstance(metric, str | Mapping | BaseMultiTurnMetric):
        return
    kind = type(metric).__name__
    got = f"the class {metric.__name__}; create an instance of it" if isinstance(metric, type) else kind
    raise UsageError(f"expected a metric object, a name or a mapping; got {got}")


async def _measured(
    metric: BaseMultiTurnMetric | Several, metric_input: MultiTurnEvaluationInput
) -> Mapping[str, MetricResult]:
    if isinstance(metric, BaseMultiTurnMetric):
        return {metric.name: await metric.measured(metric_input)}
    return await metric.measured(metric_input)


def _names(metric: BaseMultiTurnMetric | Several) -> Sequence[str]:
    return [metric.name] if isinstance(metric, BaseMultiTurnMetric) else metric.names


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two metrics are called '{name}'; give one of them another name=")


def _result_line(result: MetricResult) -> str:
    reason = f" · {result.reasoning}" if result.reasoning else ""
    return f"{result.score if result.state == 'scored' else result.state}{reason}"


SECURITY = ("goal_achievement", "toxicity", "prompt_injection", "data_leakage")
QUALITY = ("goal_achievement", "context_retention", "coherence", "response_quality", "turn_efficiency")


def security_metrics(model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return the metrics that show whether a system can be led astray: goal, toxicity, injected prompts, leaks."""
    return choose(SECURITY, model)


def quality_metrics(model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return the metrics that show how well a system converses: goal, context, coherence, answers, efficiency."""
    return choose(QUALITY, model)
