"""The suite of `viva judge`: recorded conversations and metrics, named on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.metrics.config import Scope
from vivavoce.settings import settings
from vivavoce.suites.document import Document
from vivavoce.suites.load import Suite
from vivavoce.suites.metric_names import metric_of
from vivavoce.suites.mistakes import mistakes_in
from vivavoce.suites.spec import MetricGraderSpec, SuiteSpec


def judging_suite(
    path: Path,
    metrics: Sequence[str],
    model: str | None = None,
    *,
    scope: Scope = "conversation",
    fields: Mapping[str, str] | None = None,
    max_concurrent: int = 64,
) -> Suite:
    """Return the suite that measures the conversations of a file; `fields` says where its rows keep what is needed.

    Raises:
        UsageError: a metric is unknown or named twice, or is judged and nobody names a judge.
    """
    judge = model or settings().judge
    graders = {_short(name): {"kind": "metric", "metric": name, "model": judge, "scope": scope} for name in metrics}
    if len(graders) < len(metrics) or not metrics:
        raise UsageError(f"--metrics names different metrics, at least one; got {', '.join(metrics) or 'none'}")
    data: dict[str, Any] = {
        "name": f"judge {path.stem}",
        "driver": "replay",
        "dataset": {"path": str(path.absolute()), "fields": dict(fields or {})},
        "graders": graders,
        "max_concurrent": max_concurrent,
    }
    document = Document(Path.cwd() / "judge", data, replaced=set(data))
    try:
        suite = Suite(SuiteSpec.model_validate(data), document, None)
    except ValidationError as error:
        raise UsageError(*mistakes_in(document, error)) from error
    if judge is None:
        _check_exact(suite)
    return suite


def _short(name: str) -> str:
    """Return what the scores of a metric are called: its name, that within its file, or that of its file."""
    return Path(name).stem if name.endswith((".yaml", ".yml")) else name.rpartition(":")[2]


def _check_exact(suite: Suite) -> None:
    for name, spec in suite.spec.graders.items():
        if isinstance(spec, MetricGraderSpec) and metric_of(name, spec, suite.base).judged:
            raise UsageError(f"the metric '{name}' asks a judge: name one with --judge, or in VIVAVOCE_JUDGE")
