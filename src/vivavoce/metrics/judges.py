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

    The metric itself stays as it is; one that never asks a judge is returned unchanged. In a composition every part
    that asks gets its judge this way.
    """
    if not (metric.judged or metric.may_ask):
        return metric
    changed = copy_of(metric)
    if changed.inner_metrics:
        changed.inner_metrics = tuple(with_judges(part, choose) for part in changed.inner_metrics)
    else:
        changed.model = choose(changed.model)
    return changed


def asking(metric: BaseMultiTurnMetric) -> Iterator[BaseMultiTurnMetric]:
    """Yield the parts of a metric that ask a judge; of one without parts the metric itself."""
    if metric.inner_metrics:
        for part in metric.inner_metrics:
            yield from asking(part)
    elif metric.judged:
        yield metric


def copy_of(metric: M) -> M:
    """Return a copy of a metric without what was computed for its judge and kept, such as the fingerprint."""
    changed = copy(metric)
    for name in list(vars(changed)):
        if isinstance(getattr(type(changed), name, None), cached_property):
            delattr(changed, name)
    return changed
