"""Silence: the score of a conversation in which the assistant says and does nothing, which no judge is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.score import Raw

SILENT = "the assistant says and does nothing in this conversation"


def score_of_silence(
    metric: BaseMultiTurnMetric,
    metric_input: MultiTurnEvaluationInput,
    raw: Raw,
    extra: Mapping[str, Any] | None = None,
) -> MetricResult:
    """Return the score `raw` of a metric, with what it means on the metric's scale."""
    value, passed = metric.config.scored(raw)
    return MetricResult(
        name=metric.name,
        raw=raw,
        value=value,
        passed=passed,
        reason=SILENT,
        confidence=1.0,
        extra=dict(extra or {}),
        fingerprint=metric.fingerprint,
        about=About(metric.config.score_type, len(metric_input.messages), metric_input.goal),
    )
