"""Evaluating one conversation with several metrics: a broken metric is one error, and the others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.metrics.factory import create_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric, Conversation, evaluation_input
from vivavoce.metrics.result import MetricResult
from vivavoce.models.homemade import ModelLike
from vivavoce.pacing.waiting import wait_for

Named = str | BaseMultiTurnMetric
"""A metric, or its name."""


class EvaluationReport(Mapping[str, MetricResult]):
    """The results of several metrics for one conversation, by the names of the metrics."""

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
        """Whether something was measured and everything passed; an error, or nothing at all, has not."""
        return bool(self._results) and all(result.passed for result in self._results.values())


def evaluate_conversation(
    conversation: Conversation,
    metrics: Sequence[Named],
    goal: str | None = None,
    *,
    model: ModelLike | None = None,
    **known: Any,
) -> EvaluationReport:
    """Measure one conversation with several metrics, given as such or by name; works inside a running loop too.

    `model` judges for the metrics given by name; `known` is anything else that `MultiTurnEvaluationInput` holds.

    Raises:
        UsageError: a name is unknown, or two metrics have the same.
        BudgetExhausted: a limit on calls or cost is reached.
    """
    return wait_for(aevaluate_conversation(conversation, metrics, goal, model=model, **known))


async def aevaluate_conversation(
    conversation: Conversation,
    metrics: Sequence[Named],
    goal: str | None = None,
    *,
    model: ModelLike | None = None,
    **known: Any,
) -> EvaluationReport:
    """Do as `evaluate_conversation`."""
    chosen = choose(metrics, model)
    given = evaluation_input(conversation, goal=goal, **known)
    results = await asyncio.gather(*(metric.measured(given) for metric in chosen))
    return EvaluationReport({metric.name: result for metric, result in zip(chosen, results, strict=True)})


def choose(metrics: Sequence[Named], model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return metrics, making those that are given by name; `model` is their judge.

    Raises:
        UsageError: a name is unknown, or two metrics have the same.
    """
    chosen = [create_metric(one, model=model) if isinstance(one, str) else one for one in metrics]
    names = [metric.name for metric in chosen]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two metrics are called '{name}'; give one of them another name=")
    return chosen


def _shown(result: MetricResult) -> str:
    reason = f" · {result.reasoning}" if result.reasoning else ""
    return f"{result.score if result.state == 'scored' else result.state}{reason}"
