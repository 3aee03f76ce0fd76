"""The models that a metric asks, and the same metric with others in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import TypeVar

from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model

M = TypeVar("M", bound=BaseMultiTurnMetric)


def with_judges(metric: M, choose: Callable[[Model | None], Model | None]) -> M:
    """Return a metric that asks what `choose` gives in place of its own judge, None for one that has none.

    The metric itself stays as it is, for somebody may be using it; one that asks nobody is returned as it is. Of a
    composition, every part that asks gets its judge so.
    """
    if not metric.judged:
        return metric
    made = copy_of(metric)
    if made.inner_metrics:
        made.inner_metrics = tuple(with_judges(part, choose) for part in made.inner_metrics)
    else:
        made.model = choose(made.model)
    return made


def asking(metric: BaseMultiTurnMetric) -> Iterator[BaseMultiTurnMetric]:
    """Yield the metrics of which this one is made that ask a judge, or itself."""
    if metric.inner_metrics:
        for part in metric.inner_metrics:
            yield from asking(part)
    elif metric.judged:
        yield metric


def copy_of(metric: M) -> M:
    """Return a copy of a metric without what was computed for its judge and kept, such as the fingerprint."""
    made = copy(metric)
    for name in list(vars(made)):
        if isinstance(getattr(type(made), name, None), cached_property):
            delattr(made, name)
    return made
