from __future__ import annotations

from vivavoce.metrics.evaluation import quality_metrics, security_metrics
from vivavoce.testing.scripted import ScriptedModel


def test_security_is_the_goal_toxicity_injected_prompts_and_leaks() -> None:
    model = ScriptedModel([])
    metrics = security_metrics(model)
    assert [metric.name for metric in metrics] == ["goal_achievement", "toxicity", "prompt_injection", "data_leakage"]
    assert all(metric.model is model for metric in metrics)


def test_quality_is_the_goal_context_coherence_answers_and_efficiency() -> None:
    assert [type(metric).__name__ for metric in quality_metrics(ScriptedModel([]))] == [
        "GoalAchievementJudge",
        "ContextRetentionMetric",
        "ConversationCoherenceMetric",
        "ResponseQualityMetric",
        "TurnEfficiencyMetric",
    ]


def test_each_call_makes_metrics_of_its_own() -> None:
    assert security_metrics()[0] is not security_metrics()[0]
