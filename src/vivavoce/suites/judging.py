"""The suites of `viva judge` and `viva test`, made from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vivavoce.errors import Problem, UsageError
from vivavoce.metrics.config import Scope
from vivavoce.metrics.panel import asking
from vivavoce.models.cache import OfflineModel
from vivavoce.models.model import Model
from vivavoce.settings import settings
from vivavoce.suites.grader_spec import MetricGraderSpec
from vivavoce.suites.load import JUDGE, Suite, described_suite
from vivavoce.suites.metric_names import Named, metric_graders, metric_of
from vivavoce.suites.spec import SuiteSpec

GRADERS = {
    "goal": {"kind": "function", "function": "goal_achieved"},
    "target": {"kind": "function", "function": "target_passed"},
}
"""The graders of every test: whether the goal was reached, and whether the target passed."""


def testing_suite(
    target: Mapping[str, Any],
    row: Mapping[str, Any],
    tester: Mapping[str, Any],
    metrics: Mapping[str, Any],
    base: Path,
) -> Suite:
    """Return the suite of one test; `metrics` are further graders of the conversation.

    Paths in it start at `base`.

    Raises:
        UsageError: something in it cannot be used.
    """
    data: dict[str, Any] = {
        "name": "test",
        "driver": "penelope",
        "dataset": {"rows": [{"id": "test", **row}]},
        "target": dict(target),
        "tester": dict(tester),
        "graders": {**GRADERS, **metrics},
        "gate": {"kind": "simple", "metric_key": "target", "aggregation": "avg_score", "op": "gte", "value": 1},
    }
    return described_suite(data, base, "test")


def judging_suite(
    path: Path,
    metrics: Sequence[Named],
    model: str | None = None,
    *,
    name: str | None = None,
    scope: Scope | None = None,
    fields: Mapping[str, str] | None = None,
    format: str | None = None,  # noqa: A002
    max_concurrent: int = 64,
) -> Suite:
    """Return the suite that measures the conversations of a file; `fields` says where its rows have the needed values.

    `format` is that of the file; without it, its first conversations tell.

    Raises:
        UsageError: a metric is unknown or named twice, or needs a judge and none is named.
    """
    dataset = {"path": str(path.absolute()), "fields": dict(fields or {}), "format": format}
    data = {"name": name or f"judge {path.stem}", "dataset": dataset, "max_concurrent": max_concurrent}
    return metrics_suite(data, metrics, model, scope)


def metrics_suite(
    described: Mapping[str, Any], metrics: Sequence[Named], model: str | None = None, scope: Scope | None = None
) -> Suite:
    """Return the suite that measures recorded conversations; `described` is the rest of it as data.

    Raises:
        UsageError: a metric is unknown or named twice, or needs a judge and none is named.
    """
    if not metrics:
        raise UsageError("--metrics needs at least one metric")
    graders = metric_graders(metrics, **({"scope": scope} if scope else {}))
    data: dict[str, Any] = {**described, "driver": "replay", "graders": graders}
    base = Path.cwd()
    for metric, judge in _judges(described_suite(data, base, JUDGE).spec, model, base).items():
        graders[metric].setdefault("model", judge)
    return replace(described_suite(data, base, JUDGE), judge=model)


def _judges(suite: SuiteSpec, model: str | None, base: Path) -> dict[str, str | None]:
    """Return the names of the judges that the metrics need.

    Raises:
        UsageError: with every metric that cannot be used.
    """
    found: dict[str, str | None] = {}
    problems: list[Problem] = []
    for name, grader in suite.graders.items():
        assert isinstance(grader, MetricGraderSpec)
        try:
            found[name] = _judge(name, grader, model, base)
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(*problems)
    return found


def _judge(name: str, spec: MetricGraderSpec, model: str | None, base: Path) -> str | None:
    """Return the judge of a metric; a metric with its own judge keeps it, unless the judge is in a file."""
    metric = metric_of(name, spec, base, _unopened)
    if spec.model is not None:
        return spec.model
    own = [one.model is not None for one in asking(metric)]
    if all(own):
        return model if own and spec.metric.endswith((".yaml", ".yml")) else None
    judge = model or settings().judge
    if judge is None:
        raise UsageError(f"the metric '{name}' needs a judge: use --judge, or set VIVAVOCE_JUDGE")
    return judge


def _unopened(judge: str | Model) -> Model:
    return OfflineModel(judge) if isinstance(judge, str) else judge
