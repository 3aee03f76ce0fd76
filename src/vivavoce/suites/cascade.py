"""`cascade:` of a grader: which metric is asked first, and where it decides alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vivavoce.errors import UsageError
from vivavoce.metrics.cascade import Cascade
from vivavoce.metrics.judges import asking, with_judges
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model
from vivavoce.suites.grader_spec import CascadeSpec, JudgeGraderSpec, MetricGraderSpec
from vivavoce.suites.metric_names import metric_of

OpenFirst = Callable[[str | Model], Model]
"""Opens the judge that is asked first."""


def cascaded(
    metric: BaseMultiTurnMetric,
    spec: JudgeGraderSpec | MetricGraderSpec,
    cascade: CascadeSpec,
    base: Path,
    opening: OpenFirst,
) -> Cascade:
    """Return a metric that is asked only where the first one of its `cascade:` is unsure.

    Raises:
        UsageError: single turns are graded, or there is no such first metric.
    """
    if spec.scope == "turn":
        raise UsageError("a cascade judges whole conversations; remove scope: turn")
    rubric = isinstance(spec, JudgeGraderSpec)
    return Cascade(
        _first(metric, spec, cascade, base, opening),
        metric,
        fails_below=cascade.fails_below,
        passes_from=cascade.passes_from,
        passing=spec.threshold if rubric else None,
        by_threshold=not rubric and spec.threshold is not None,
    )


def _first(
    metric: BaseMultiTurnMetric,
    spec: JudgeGraderSpec | MetricGraderSpec,
    cascade: CascadeSpec,
    base: Path,
    opening: OpenFirst,
) -> BaseMultiTurnMetric:
    if cascade.metric is None:
        if not metric.judged:
            raise UsageError("this metric asks no model, so another model changes nothing; name a metric instead")
        cheap = opening(cascade.model or "")
        return with_judges(metric, lambda _: cheap)
    settings = spec.model_dump(include={"temperature", "settings"}) if cascade.model else {}
    named = MetricGraderSpec(
        kind="metric", metric=cascade.metric, model=cascade.model, config=cascade.config, **settings
    )
    first = metric_of(cascade.metric, named, base, opening)
    if any(one.model is None for one in asking(first)):
        raise UsageError(f"'{cascade.metric}' needs a judge: write model beside metric")
    return first
