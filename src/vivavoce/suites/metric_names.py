"""From a grader of a suite to its metric: by name, as `file.py:name`, or from a `.yaml` file with a prompt."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.foreign_code import check_callable
from vivavoce.grading.function_grader import FunctionGrader, FunctionGrading, GraderMetric, is_grading_function
from vivavoce.grading.metrics import extracted
from vivavoce.metrics.choice import Choice, choose_metric, make_chosen, passing_from
from vivavoce.metrics.custom import function_metric
from vivavoce.metrics.factory import named_metric
from vivavoce.metrics.judges import asking, copy_of, with_judges
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.model import Model
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.suites.grader_spec import MetricGraderSpec
from vivavoce.suites.metrics import load_metric
from vivavoce.user_code import text_of

Opening = Callable[[str | Model], Model]
"""Opens a judge by its name, or prepares a model object."""
_MADE_WITH = ("config", "settings", "temperature")
"""Options that are already decided for a metric object."""
_CHOSEN = ("metric", "config", "scope", "threshold", "extractor", "extractor_config", "temperature", "settings")


def metric_of(
    name: str, spec: MetricGraderSpec, base: Path, opening: Opening, default: str | None = None
) -> BaseMultiTurnMetric:
    """Return the metric of a grader; a metric created here has the name of the grader.

    Its judge is the one that the suite names, else the metric's own, else the `default`.

    Raises:
        UsageError: there is no such metric or option, or the file has no metric of that name.
    """
    named = spec.model or default

    def choose(own: Model | None) -> Model | None:
        if own is not None:
            return opening(own)
        return None if named is None else opening(named)

    if grading := grading_of(spec, base):
        return GraderMetric(grading.grader(name, base))
    if spec.metric.endswith((".yaml", ".yml")):
        _check_made(spec)
        loaded = load_metric(base / spec.metric, spec.model and opening(spec.model), opening=opening)
        made = _configured(loaded, spec, base)
        return made if loaded.model is not None else with_judges(made, choose)
    made = _made(name, spec, base)
    own = [one.model is not None for one in asking(made)]
    if spec.model is not None and own and all(own):
        raise UsageError(f"'{spec.metric}' already has a judge; remove model")
    return with_judges(made, choose)


def grading_of(spec: MetricGraderSpec, base: Path) -> FunctionGrading | None:
    """Return the grading function that a suite uses as a metric, None if it names a metric.

    Raises:
        UsageError: there is none of that name, or the scope is a window.
    """
    if is_file_reference(spec.metric):
        found: object = load_object(spec.metric, base)
        if isinstance(found, type | BaseMultiTurnMetric) or not callable(found) or not is_grading_function(found):
            return None
    elif spec.metric.endswith((".yaml", ".yml")) or not issubclass(named_metric(spec.metric), FunctionGrader):
        return None
    if spec.scope == "window":
        raise UsageError(
            f"'{spec.metric}' is a grading function, which cannot grade windows; scope must be turn or conversation"
        )
    return FunctionGrading(
        function=spec.metric,
        config=spec.config,
        extractor=spec.extractor or "last_assistant",
        extractor_config=spec.extractor_config,
        scope=spec.scope,
        threshold=spec.threshold,
        scores_errors=spec.scores_errors,
        display_name=spec.display_name,
    )


def written_in(spec: MetricGraderSpec, base: Path) -> str:
    """Return the code and options of a user-defined metric as text; "" for all other metrics."""
    if not is_file_reference(spec.metric):
        return ""
    code = text_of((base / spec.metric.rpartition(":")[0]).resolve())
    return json.dumps([spec.metric, code, spec.config], sort_keys=True, default=str)


def _made(name: str, spec: MetricGraderSpec, base: Path) -> BaseMultiTurnMetric:
    how = cast("Choice", {"name": name, **{one: getattr(spec, one) for one in _CHOSEN}})
    if not is_file_reference(spec.metric):
        return choose_metric(how, base=base)
    kind: object = load_object(spec.metric, base)
    if isinstance(kind, BaseMultiTurnMetric):
        _check_made(spec)
        return _configured(kind, spec, base)
    if inspect.isclass(kind) and issubclass(kind, BaseMultiTurnMetric):
        return make_chosen(kind, how, base)
    if not callable(kind):
        raise UsageError(f"'{spec.metric}' is not a metric, a metric class or a function")
    function = check_callable(kind, spec.metric, "a metric")
    options: dict[str, Any] = {"name": name, **spec.config} | ({"scope": "window"} if spec.scope == "window" else {})
    made = function_metric(function, **options)
    return _configured(made, spec, base)


def _configured(metric: BaseMultiTurnMetric, spec: MetricGraderSpec, base: Path) -> BaseMultiTurnMetric:
    """Return a metric object with the threshold and extractor of a suite, if the suite has these."""
    if spec.threshold is not None:
        config, metric = passing_from(metric, spec.threshold), copy_of(metric)
        metric.config = config
    if spec.extractor is None and spec.scope != "turn":
        return metric
    how = Choice(metric=spec.metric, scope=spec.scope, extractor=spec.extractor, extractor_config=spec.extractor_config)
    return extracted(metric, how, base)


def _check_made(spec: MetricGraderSpec) -> None:
    fields = MetricGraderSpec.model_fields
    options = [one for one in _MADE_WITH if getattr(spec, one) != fields[one].get_default(call_default_factory=True)]
    if spec.extractor is None and spec.scope in ("turn", "window"):
        options.append("scope")
    if options:
        raise UsageError(f"'{spec.metric}' already has its options; remove {options[0]}")
