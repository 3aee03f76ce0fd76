"""From a command line to a suite: targets by name, and the suites of `viva judge` and `viva test`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vivavoce.errors import Problem, UsageError
from vivavoce.metrics.config import Scope
from vivavoce.metrics.panel import asking
from vivavoce.models.model import Model
from vivavoce.plugins import is_file_reference, load_object
from vivavoce.settings import VARIABLE, settings
from vivavoce.suites.grading_spec import MetricGraderSpec
from vivavoce.suites.judges import offline_model
from vivavoce.suites.load import JUDGE, TEST, Suite, described_suite
from vivavoce.suites.metric_names import MetricRef, metric_graders, metric_of
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.target_spec import BUILT_IN_TARGETS, AnyTargetSpec, PluginTargetSpec, TargetSpec
from vivavoce.wire.http import checked_url


def read_target(name: str) -> dict[str, Any]:
    """Return the target of a suite for `file.py:function` or `http://host/v1#MODEL`; paths start at the current folder.

    Raises:
        UsageError: the name has neither form, or there is no such file, function or address; the message names the
        option.
    """
    if is_file_reference(name):
        return {"kind": "function", "function": _function(name)}
    if name.startswith(("http://", "https://")):
        base_url, _, model = name.partition("#")
        checked_url(base_url, "--target")
        if not model:
            raise UsageError(f"--target: the model is missing; write {base_url}#MODEL")
        return {"kind": "openai", "base_url": base_url, "model_handles": [model]}
    raise UsageError(f"--target: '{name}' must be file.py:function or http://host/v1#MODEL")


def read_targets(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the targets of a suite for such names; what would be called the same is called as it is named here.

    Raises:
        UsageError: a name is not that of a target, or is given twice.
    """
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"--target: '{twice}' is given twice")
    targets = [read_target(name) for name in names]
    called = [target_names(target) for target in targets]
    return [
        {**target, "name": name} if called.count(own) > 1 else target
        for name, own, target in zip(names, called, targets, strict=True)
    ]


def target_names(target: Mapping[str, Any]) -> list[str]:
    """Return the names, in the results of a run, of a target that is described as in a suite."""
    return [name for name, _ in described_target(target).names_and_models]


def described_target(target: Mapping[str, Any]) -> TargetSpec:
    """Return a target that is described as in a suite; settings that are variables, and no texts, are left out.

    A kind that is not built in needs no plugin here, so that a stored run can be read without it.
    """
    if target.get("kind") not in BUILT_IN_TARGETS:
        return PluginTargetSpec.model_validate(target)
    try:
        return _TARGET.validate_python(target)
    except ValidationError as error:
        wrong = {detail["loc"][1] for detail in error.errors() if len(detail["loc"]) > 1}
        variables = {key for key in wrong if VARIABLE.search(str(target.get(str(key))))}
        if not variables:
            raise
        return _TARGET.validate_python({key: value for key, value in target.items() if key not in variables})


_TARGET = TypeAdapter[TargetSpec](AnyTargetSpec)


def _function(name: str) -> str:
    path, _, function = name.rpartition(":")
    if not Path(path).is_file():
        raise UsageError(f"--target: no file '{path}'")
    try:
        load_object(name, Path())
    except UsageError as error:
        raise UsageError(*(p if p.file else f"--target: {p.message}" for p in error.problems)) from error
    return f"{Path(path).resolve()}:{function}"


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
    return described_suite(data, base, TEST)


def judging_suite(
    path: Path,
    metrics: Sequence[MetricRef],
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
    described: Mapping[str, Any], metrics: Sequence[MetricRef], model: str | None = None, scope: Scope | None = None
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
    judges: dict[str, str | None] = {}
    problems: list[Problem] = []
    for name, grader in suite.graders.items():
        assert isinstance(grader, MetricGraderSpec)
        try:
            judges[name] = _judge(name, grader, model, base)
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(*problems)
    return judges


def _judge(name: str, spec: MetricGraderSpec, model: str | None, base: Path) -> str | None:
    """Return the judge of a metric; a metric with its own judge keeps it, unless the judge is in a file."""
    metric = metric_of(name, spec, base, _as_offline)
    if spec.model is not None:
        return spec.model
    own = [judged_metric.model is not None for judged_metric in asking(metric)]
    if all(own):
        return model if own and spec.metric.endswith((".yaml", ".yml")) else None
    judge = model or settings().judge
    if judge is None:
        raise UsageError(f"the metric '{name}' needs a judge: use --judge, or set VIVAVOCE_JUDGE")
    return judge


def _as_offline(judge: str | Model) -> Model:
    return offline_model(judge) if isinstance(judge, str) else judge
