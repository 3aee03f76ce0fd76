"""From what a suite says of a metric to the metric: its name, `file.py:name`, or a `.yaml` that holds a prompt."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.metrics.custom import function_metric
from vivavoce.metrics.factory import create_metric, make_metric
from vivavoce.metrics.judges import asking, copy_of, with_judges
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.suites.metrics import load_metric
from vivavoce.suites.spec import MetricGraderSpec
from vivavoce.user_code import text_of

Opening = Callable[[str | Model], Model]
"""Opens a judge by its name, and makes one that is a model already ready to be asked."""


def metric_of(
    name: str, spec: MetricGraderSpec, base: Path, opening: Opening, default: str | None = None
) -> BaseMultiTurnMetric:
    """Return the metric of a grader; one that is made here bears the name of the grader.

    Its judge is the one that the suite names, else its own, else the `default`.

    Raises:
        UsageError: there is none of that name, it takes no such option, or the file has no metric of that name.
    """
    named = spec.model or default

    def choose(own: Model | None) -> Model | None:
        if own is not None:
            return opening(own)
        return None if named is None else opening(named)

    if spec.metric.endswith((".yaml", ".yml")):
        _check_made(spec)
        made = load_metric(base / spec.metric, spec.model and opening(spec.model), opening=opening)
        made = _passing_from(made, spec.threshold)
        return made if made.model is not None else with_judges(made, choose)
    made = _made(name, spec, base)
    own = [one.model is not None for one in asking(made)]
    if spec.model is not None and own and all(own):
        raise UsageError(f"'{spec.metric}' has its judge already; leave model out")
    return with_judges(_passing_from(made, spec.threshold), choose)


def _passing_from(metric: BaseMultiTurnMetric, threshold: float | None) -> BaseMultiTurnMetric:
    """Return a metric whose scores pass from a threshold on, None for its own."""
    if threshold is None:
        return metric
    config = metric.config
    if config.score_type == "categorical":
        raise UsageError(
            f"'{metric.name}' gives a label, which no threshold decides; name passing_categories in config"
        )
    if threshold < config.minimum or (config.maximum is not None and threshold > config.maximum):
        highest = "" if config.maximum is None else f" to {config.maximum:g}"
        raise UsageError(
            f"the scores of '{metric.name}' go from {config.minimum:g}{highest}; got threshold: {threshold:g}"
        )
    made = copy_of(metric)
    made.config = config.model_copy(update={"threshold": threshold})
    return made


def written_in(spec: MetricGraderSpec, base: Path) -> str:
    """Return the code of a metric of the user and the options that it gets, as text; "" for all other metrics."""
    if not is_file_reference(spec.metric):
        return ""
    code = text_of((base / spec.metric.rpartition(":")[0]).resolve())
    return json.dumps([spec.metric, code, spec.config], sort_keys=True, default=str)


def _made(name: str, spec: MetricGraderSpec, base: Path) -> BaseMultiTurnMetric:
    options = _options(name, spec, base)
    judging = {"temperature": spec.temperature, **spec.settings}
    if not is_file_reference(spec.metric):
        return create_metric(spec.metric, judging=judging, **options)
    kind: object = load_object(spec.metric, base)
    if isinstance(kind, BaseMultiTurnMetric):
        _check_made(spec)
        return kind
    if inspect.isclass(kind) and issubclass(kind, BaseMultiTurnMetric):
        return make_metric(kind, spec.metric, judging=judging, **options)
    if inspect.isfunction(kind):
        return function_metric(kind, **options)
    raise UsageError(f"'{spec.metric}' is none of a metric, a class of metrics and a function")


def _check_made(spec: MetricGraderSpec) -> None:
    fields = MetricGraderSpec.model_fields
    for one in ("config", "scope", "settings", "temperature"):
        if getattr(spec, one) != fields[one].get_default(call_default_factory=True):
            raise UsageError(f"'{spec.metric}' has its options already; leave {one} out")


def _options(name: str, spec: MetricGraderSpec, base: Path) -> dict[str, Any]:
    options: dict[str, Any] = {"name": name, **spec.config}
    for one in ("model", "settings"):
        if one in options:
            raise UsageError(f"{one} stands beside config, not in it")
    if spec.scope != "conversation":
        options["scope"] = spec.scope
    if "prompt_path" in options:
        options["prompt"] = base / str(options.pop("prompt_path"))
    return options
