"""Evaluating one conversation with several metrics: a broken metric is one error, and the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Unpack

from vivavoce.errors import UsageError
from vivavoce.metrics.choice import Choice, choose_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric, Conversation, evaluation_input
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import Expected, MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.usage import Usage
from vivavoce.signatures import shows_options

Named = str | Choice | BaseMultiTurnMetric
"""A metric, its name, or its name with options as a mapping: `{"metric": "fuzzy_ratio", "threshold": 0.9}`."""


class Known(Expected, total=False):
    """What may be known about a conversation besides its goal, as `MultiTurnEvaluationInput` has it."""

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

    async def measured(self, given: MultiTurnEvaluationInput) -> Mapping[str, MetricResult]:
        """Return the results by the names of the metrics; what breaks becomes a result."""
        ...

    async def close(self) -> None:
        """Close the connections of what it asks."""
        ...


class EvaluationReport(Mapping[str, MetricResult]):
    """The results of several metrics for one conversation, by the names of the metrics, in the order of asking."""

    def __init__(self, results: Mapping[str, MetricResult]) -> None:
        self._results = dict(results)

    def __getitem__(self, name: str) -> MetricResult:
        """Return the result of a metric.

        Raises:
            KeyError: no metric of that name was asked.
        """
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        lines = [f"  {name}: {_shown(result)}" for name, result in self._results.items()]
        return "\n".join(["EvaluationReport", *lines])

    def get_metric(self, name: str) -> MetricResult:
        """Return the result of a metric.

        Raises:
            KeyError: no metric of that name was asked.
        """
        return self[name]

    @property
    def all_passed(self) -> bool:
        """Whether something was judged good enough, and nothing was not.

        An error and a metric that was skipped have not passed. A score of a metric that says nothing of passing, such
        as a count without a threshold, is left out; where nothing is left, nothing has passed.
        """
        verdicts = [one.passed for one in self._results.values() if one.state != "scored" or one.passed is not None]
        return bool(verdicts) and all(verdicts)

    @property
    def usage(self) -> Usage | None:
        """What all of them used together, None where no model said what it used."""
        return spent(self._results.values())


def spent(results: Iterable[MetricResult]) -> Usage | None:
    """Return what results used together, None where none of them says so."""
    used = [result.usage for result in results if result.usage is not None]
    return sum(used, Usage()) if used else None


@shows_options
def evaluate_conversation(
    conversation: Conversation,
    metrics: Sequence[Named | Several],
    goal: str | None = None,
    *,
    model: ModelLike | None = None,
    **known: Unpack[Known],
) -> EvaluationReport:
    """Measure one conversation with several metrics, given as such or by name; works inside a running loop too.

    `model` judges for the metrics given by name. Metrics that share one call are given as one `JointJudge`.

    Raises:
        UsageError: a name is unknown, or two metrics have the same.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    return wait_for(evaluate_given(evaluation_input(conversation, goal=goal, **known), metrics, model, close=True))


@shows_options
async def aevaluate_conversation(
    conversation: Conversation,
    metrics: Sequence[Named | Several],
    goal: str | None = None,
    *,
    model: ModelLike | None = None,
    **known: Unpack[Known],
) -> EvaluationReport:
    """Async version of `evaluate_conversation`; connections stay open for the next one."""
    return await evaluate_given(evaluation_input(conversation, goal=goal, **known), metrics, model)


async def evaluate_given(
    given: MultiTurnEvaluationInput,
    metrics: Sequence[Named | Several],
    model: ModelLike | None = None,
    *,
    close: bool = False,
) -> EvaluationReport:
    """Measure what metrics are given with several of them; `close` closes the connections of the judges at the end.

    Raises:
        UsageError: a name is unknown, or two metrics have the same.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    judge = None if model is None else as_model(model)
    chosen = [choose_metric(one, judge) if isinstance(one, str | Mapping) else one for one in metrics]
    _check_names([name for one in chosen for name in _names(one)])
    try:
        measured = await asyncio.gather(*(_measured(one, given) for one in chosen))
    finally:
        for one in chosen if close else ():
            await one.close()
    return EvaluationReport({name: result for results in measured for name, result in results.items()})


def choose(metrics: Sequence[Named], model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return metrics, making those that are given by name; `model` is their judge.

    Raises:
        UsageError: a name is unknown, something else is given, or two metrics have the same name.
    """
    judge = None if model is None else as_model(model)
    for metric in metrics:
        _check_kind(metric)
    chosen = [choose_metric(one, judge) if isinstance(one, str | Mapping) else one for one in metrics]
    _check_names([metric.name for metric in chosen])
    return chosen


def _check_kind(metric: object) -> None:
    if isinstance(metric, str | Mapping | BaseMultiTurnMetric):
        return
    got = f"the class {metric.__name__}; make one of it" if isinstance(metric, type) else type(metric).__name__
    raise UsageError(f"a metric is given as such or by its name; got {got}")


async def _measured(one: BaseMultiTurnMetric | Several, given: MultiTurnEvaluationInput) -> Mapping[str, MetricResult]:
    if isinstance(one, BaseMultiTurnMetric):
        return {one.name: await one.measured(given)}
    return await one.measured(given)


def _names(one: BaseMultiTurnMetric | Several) -> Sequence[str]:
    return [one.name] if isinstance(one, BaseMultiTurnMetric) else one.names


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two metrics are called '{name}'; give one of them another name=")


def _shown(result: MetricResult) -> str:
    reason = f" · {result.reasoning}" if result.reasoning else ""
    return f"{result.score if result.state == 'scored' else result.state}{reason}"
