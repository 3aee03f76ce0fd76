"""Metrics named outside of a suite, on a command line or in a request, as graders of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from vivavoce.errors import UsageError

Named = str | Mapping[str, object]
"""A metric by name, or as a mapping with the keys of a grader of a suite and a `name` for its scores."""

_FORM = "write a metric with options as {metric: fuzzy_ratio, threshold: 0.9}"


def read_metrics(text: str) -> list[Named]:
    """Return the metrics of a command line: names separated by commas, or YAML mappings on one line.

    Raises:
        UsageError: a mapping cannot be read, or does not name a metric.
    """
    if "{" not in text:
        return [name.strip() for name in text.split(",") if name.strip()]
    try:
        found: Any = YAML(typ="safe", pure=True).load(f"[{text}]")  # pyright: ignore[reportUnknownMemberType]
    except YAMLError as error:
        raise UsageError(f"'{text}' cannot be read; {_FORM}") from error
    named = cast("list[object]", found)
    for one in named:
        metric = cast("dict[str, object]", one).get("metric") if isinstance(one, dict) else one
        if not isinstance(metric, str):
            raise UsageError(f"'{one}' does not name a metric; {_FORM}")
    return cast("list[Named]", named)


def metric_graders(metrics: Sequence[Named], **shared: Any) -> dict[str, dict[str, Any]]:
    """Return metrics as graders of a suite, by the names of their scores; `shared` are fields of all of them.

    Raises:
        UsageError: two have the same name.
    """
    graders: dict[str, dict[str, Any]] = {}
    for one in metrics:
        how = {"metric": one} if isinstance(one, str) else dict(one)
        name = str(how.pop("name", None) or short_name(str(how["metric"])))
        if name in graders:
            got = ", ".join(one if isinstance(one, str) else str(one["metric"]) for one in metrics)
            hint = f"; {{metric: {name}, name: …}} gives its scores a different name"
            raise UsageError(f"each metric needs a different name; got {got}{hint}")
        graders[name] = {"kind": "metric", **shared, **how}
    return graders


def short_name(metric: str) -> str:
    """Return the name for the scores of a metric: its own name, its name in its file, or the name of its file."""
    return Path(metric).stem if metric.endswith((".yaml", ".yml")) else metric.rpartition(":")[2]
