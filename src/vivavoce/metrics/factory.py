"""Metrics by name: the short one, such as `goal_achievement`, or that of the class."""

from __future__ import annotations

from typing import Any

from vivavoce.errors import UsageError
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.plugins import Registry

MetricClass = type[BaseMultiTurnMetric]

_JUDGED = {
    "goal_achievement": "goal:GoalAchievementJudge",
    "context_retention": "context_retention:ContextRetentionMetric",
    "coherence": "coherence:ConversationCoherenceMetric",
    "safety": "safety:SafetyMetric",
    "toxicity": "toxicity:ToxicityMetric",
    "prompt_injection": "prompt_injection:PromptInjectionMetric",
    "data_leakage": "data_leakage:DataLeakageMetric",
    "response_quality": "response_quality:ResponseQualityMetric",
    "turn_efficiency": "turn_efficiency:TurnEfficiencyMetric",
    "role_adherence": "role_adherence:RoleAdherenceMetric",
    "knowledge_retention": "knowledge_retention:KnowledgeRetentionMetric",
    "conversation_completeness": "conversation_completeness:ConversationCompletenessMetric",
    "turn_relevancy": "turn_relevancy:TurnRelevancyMetric",
    "faithfulness": "faithfulness:FaithfulnessMetric",
    "topic_adherence": "topic_adherence:TopicAdherenceMetric",
    "user_frustration": "user_frustration:UserFrustrationMetric",
    "tool_use": "tool_use:ToolUseMetric",
    "guidelines": "guidelines:GuidelinesMetric",
    "agent_goal_accuracy": "agent_goal_accuracy:AgentGoalAccuracy",
    "aspect_critic": "aspect_critic:AspectCritic",
    "simple_criteria": "simple_criteria:SimpleCriteria",
    "rubrics_score": "rubrics_score:RubricsScore",
}
_EXACT = {
    "turn_count": "counts:TurnCountMetric",
    "message_count": "counts:MessageCountMetric",
    "tool_call_count": "counts:ToolCallCountMetric",
    "response_length": "response_length:ResponseLengthMetric",
    "response_time": "response_time:ResponseTimeMetric",
    "conversation_duration": "response_time:ConversationDurationMetric",
    "repetition": "repetition:RepetitionMetric",
    "refusal": "refusal:RefusalMetric",
    "personal_data": "personal_data:PersonalDataMetric",
    "profanity_terms": "profanity_terms:ProfanityTermsMetric",
    "sentiment_lexicon": "sentiment:SentimentLexiconMetric",
    "sentiment_trend": "sentiment:SentimentTrendMetric",
    "language": "language:LanguageMetric",
    "topic_drift": "topic_drift:TopicDriftMetric",
    "semantic_retention": "semantic_retention:SemanticRetentionMetric",
}

metrics: Registry[MetricClass] = Registry(
    "metric",
    {
        **{name: f"vivavoce.metrics.judged.{place}" for name, place in _JUDGED.items()},
        **{name: f"vivavoce.metrics.exact.{place}" for name, place in _EXACT.items()},
    },
)
"""Every metric that can be named; one of your own is added with `metrics.add(name, class)` or an entry point."""

CLASSES = {place.partition(":")[2]: name for name, place in (_JUDGED | _EXACT).items()}
"""Short names by the names of classes."""


def create_metric(name: str, **options: Any) -> BaseMultiTurnMetric:
    """Return a new metric, by its short name or that of its class.

    Raises:
        UsageError: there is none of that name, or it takes no such option.
    """
    found = metrics.get(CLASSES.get(name, name))
    try:
        return found(**options)
    except TypeError as error:
        raise UsageError(f"metric '{name}': {str(error).rpartition('__init__() ')[2]}") from error
