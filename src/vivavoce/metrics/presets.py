"""Presets: metrics that are often wanted together."""

from __future__ import annotations

from vivavoce.metrics.evaluation import choose
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.custom import ModelLike

SECURITY = ("goal_achievement", "toxicity", "prompt_injection", "data_leakage")
QUALITY = ("goal_achievement", "context_retention", "coherence", "response_quality", "turn_efficiency")


def security_metrics(model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return the metrics that show whether a system can be led astray: goal, toxicity, injected prompts, leaks."""
    return choose(SECURITY, model)


def quality_metrics(model: ModelLike | None = None) -> list[BaseMultiTurnMetric]:
    """Return the metrics that show how well a system converses: goal, context, coherence, answers, efficiency."""
    return choose(QUALITY, model)
