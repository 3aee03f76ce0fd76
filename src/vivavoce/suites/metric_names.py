"""From what a suite says of a metric to the metric: its name, `file.py:name`, or a `.yaml` that holds a prompt."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.metrics.custom import function_metric
from vivavoce.metrics.factory import create_metric, make_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.suites.metrics import load_metric
from vivavoce.suites.spec import MetricGraderSpec


def metric_of(name: str, spec: MetricGraderSpec, base: Path) -> BaseMultiTurnMetric:
    """Return the metric of a grader, without its judge; its results bear the name of the grader.

    Raises:
        UsageError: there is none of that name, it takes no such option, or the file has no metric of that name.
    """
    options = _options(name, spec, base)
    if spec.metric.endswith((".yaml", ".yml")):
        return _made(load_metric(base / spec.metric), spec)
    if not is_file_reference(spec.metric):
        return create_metric(spec.metric, judging=spec.asked_with, **options)
    kind: object = load_object(spec.metric, base)
    if isinstance(kind, BaseMultiTurnMetric):
        return _made(kind, spec)
    if inspect.isclass(kind) and issubclass(kind, BaseMultiTurnMetric):
        return make_metric(kind, spec.metric, judging=spec.asked_with, **options)
    if inspect.isfunction(kind):
        return function_metric(kind, **options)
    raise UsageError(f"'{spec.metric}' is none of a metric, a class of metrics and a function")


def _made(metric: BaseMultiTurnMetric, spec: MetricGraderSpec) -> BaseMultiTurnMetric:
    if spec.config or spec.scope != "conversation":
        raise UsageError(f"'{spec.metric}' has its options already; leave config and scope out")
    return metric


def _options(name: str, spec: MetricGraderSpec, base: Path) -> dict[str, Any]:
    options: dict[str, Any] = {"name": name, **spec.config}
    if spec.scope != "conversation":
        options["scope"] = spec.scope
    if "prompt_path" in options:
        options["prompt"] = base / str(options.pop("prompt_path"))
    return options
