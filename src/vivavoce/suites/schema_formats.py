"""The JSON schemas of a suite: whether each can be used, and which of their formats are not checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from vivavoce.models.json_schema import FORMATS, unchecked_formats
from vivavoce.suites.grader_spec import FunctionGraderSpec, MetricGraderSpec
from vivavoce.suites.load import Suite

GRADER = "json_schema"


def format_notes(suite: Suite, in_rows: Iterable[str]) -> list[str]:
    """Return a note on the formats in schemas that accept any text; `in_rows` are those of assertions."""
    names = set(in_rows)
    for spec in suite.spec.graders.values():
        schema = _schema_of(spec)
        if schema is None:
            continue
        names.update(unchecked_formats(schema))
    if not names:
        return []
    one = len(names) == 1
    formats, verb = (
        ("the format", "is not checked and accepts") if one else ("the formats", "are not checked and accept")
    )
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    return [f"JSON schemas: {formats} {listed} {verb} any text; checked are {', '.join(sorted(FORMATS))}"]


def _schema_of(spec: object) -> dict[str, Any] | None:
    """Return the schema that a grader has as an option, None if it has none."""
    name = spec.function if isinstance(spec, FunctionGraderSpec) else None
    name = spec.metric if isinstance(spec, MetricGraderSpec) else name
    if name != GRADER or not isinstance(spec, FunctionGraderSpec | MetricGraderSpec):
        return None
    schema: object = spec.config.get("schema")
    return cast("dict[str, Any]", schema) if isinstance(schema, dict) else None
