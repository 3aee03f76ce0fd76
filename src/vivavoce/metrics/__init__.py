"""Metrics: what measures a conversation, judged by a model or computed exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vivavoce.plugins import lazy

if TYPE_CHECKING:
    from vivavoce.metrics.composition import AllOf as AllOf
    from vivavoce.metrics.composition import AnyOf as AnyOf
    from vivavoce.metrics.composition import Cascade as Cascade
    from vivavoce.metrics.composition import Chain as Chain
    from vivavoce.metrics.composition import Weighted as Weighted
    from vivavoce.metrics.config import ConversationType as ConversationType
    from vivavoce.metrics.config import MetricConfig as MetricConfig
    from vivavoce.metrics.custom import FunctionMetric as FunctionMetric
    from vivavoce.metrics.custom import PromptMetric as PromptMetric
    from vivavoce.metrics.custom import function_metric as function_metric
    from vivavoce.metrics.evaluation import EvaluationReport as EvaluationReport
    from vivavoce.metrics.evaluation import aevaluate_conversation as aevaluate_conversation
    from vivavoce.metrics.evaluation import evaluate_conversation as evaluate_conversation
    from vivavoce.metrics.evaluation import evaluate_test_result as evaluate_test_result
    from vivavoce.metrics.evaluation import quality_metrics as quality_metrics
    from vivavoce.metrics.evaluation import security_metrics as security_metrics
    from vivavoce.metrics.exact.agents import HandoffsMetric as HandoffsMetric
    from vivavoce.metrics.exact.agents import LastAgentMetric as LastAgentMetric
    from vivavoce.metrics.exact.agents import OwnToolsMetric as OwnToolsMetric
    from vivavoce.metrics.exact.contexts import ContextPrecisionMetric as ContextPrecisionMetric
    from vivavoce.metrics.exact.contexts import ContextRecallMetric as ContextRecallMetric
    from vivavoce.metrics.exact.counts import MessageCountMetric as MessageCountMetric
    from vivavoce.metrics.exact.counts import ToolCallCountMetric as ToolCallCountMetric
    from vivavoce.metrics.exact.counts import TurnCountMetric as TurnCountMetric
    from vivavoce.metrics.exact.forgetting import ForgettingMetric as ForgettingMetric
    from vivavoce.metrics.exact.language import LanguageMetric as LanguageMetric
    from vivavoce.metrics.exact.leaked_to_another_user import LeakedToAnotherUserMetric as LeakedToAnotherUserMetric
    from vivavoce.metrics.exact.personal_data import PersonalDataMetric as PersonalDataMetric
    from vivavoce.metrics.exact.profanity_terms import ProfanityTermsMetric as ProfanityTermsMetric
    from vivavoce.metrics.exact.refusal import RefusalMetric as RefusalMetric
    from vivavoce.metrics.exact.repetition import RepetitionMetric as RepetitionMetric
    from vivavoce.metrics.exact.response_length import ResponseLengthMetric as ResponseLengthMetric
    from vivavoce.metrics.exact.response_time import ConversationDurationMetric as ConversationDurationMetric
    from vivavoce.metrics.exact.response_time import ResponseTimeMetric as ResponseTimeMetric
    from vivavoce.metrics.exact.rule import RuleMetric as RuleMetric
    from vivavoce.metrics.exact.semantic_retention import SemanticRetentionMetric as SemanticRetentionMetric
    from vivavoce.metrics.exact.sentiment import SentimentLexiconMetric as SentimentLexiconMetric
    from vivavoce.metrics.exact.sentiment import SentimentTrendMetric as SentimentTrendMetric
    from vivavoce.metrics.exact.topic_drift import TopicDriftMetric as TopicDriftMetric
    from vivavoce.metrics.factory import create_metric as create_metric
    from vivavoce.metrics.factory import metrics as metrics
    from vivavoce.metrics.joint import JointJudge as JointJudge
    from vivavoce.metrics.judged.agent_goal_accuracy import AgentGoalAccuracy as AgentGoalAccuracy
    from vivavoce.metrics.judged.aspect_critic import AspectCritic as AspectCritic
    from vivavoce.metrics.judged.coherence import CoherenceMetric as CoherenceMetric
    from vivavoce.metrics.judged.coherence import ConversationCoherenceMetric as ConversationCoherenceMetric
    from vivavoce.metrics.judged.context_retention import ContextRetentionMetric as ContextRetentionMetric
    from vivavoce.metrics.judged.contract import ContractMetric as ContractMetric
    from vivavoce.metrics.judged.conversation_completeness import (
        ConversationCompletenessMetric as ConversationCompletenessMetric,
    )
    from vivavoce.metrics.judged.data_leakage import DataLeakageMetric as DataLeakageMetric
    from vivavoce.metrics.judged.faithfulness import FaithfulnessMetric as FaithfulnessMetric
    from vivavoce.metrics.judged.first_failure import FirstFailureMetric as FirstFailureMetric
    from vivavoce.metrics.judged.goal import GoalAchievementJudge as GoalAchievementJudge
    from vivavoce.metrics.judged.guidelines import GuidelinesMetric as GuidelinesMetric
    from vivavoce.metrics.judged.knowledge_retention import KnowledgeRetentionMetric as KnowledgeRetentionMetric
    from vivavoce.metrics.judged.prompt_injection import PromptInjectionMetric as PromptInjectionMetric
    from vivavoce.metrics.judged.response_quality import ResponseQualityMetric as ResponseQualityMetric
    from vivavoce.metrics.judged.role_adherence import RoleAdherenceMetric as RoleAdherenceMetric
    from vivavoce.metrics.judged.rubrics_score import RubricsScore as RubricsScore
    from vivavoce.metrics.judged.safety import SafetyMetric as SafetyMetric
    from vivavoce.metrics.judged.simple_criteria import SimpleCriteria as SimpleCriteria
    from vivavoce.metrics.judged.tool_use import ToolUseMetric as ToolUseMetric
    from vivavoce.metrics.judged.topic_adherence import TopicAdherenceMetric as TopicAdherenceMetric
    from vivavoce.metrics.judged.toxicity import ToxicityMetric as ToxicityMetric
    from vivavoce.metrics.judged.turn_efficiency import TurnEfficiencyMetric as TurnEfficiencyMetric
    from vivavoce.metrics.judged.turn_relevancy import TurnRelevancyMetric as TurnRelevancyMetric
    from vivavoce.metrics.judged.user_frustration import UserFrustrationMetric as UserFrustrationMetric
    from vivavoce.metrics.judging import JudgedMetric as JudgedMetric
    from vivavoce.metrics.measuring import ExactMetric as ExactMetric
    from vivavoce.metrics.metric import BaseMultiTurnMetric as BaseMultiTurnMetric
    from vivavoce.metrics.pairwise import PairwiseJudge as PairwiseJudge
    from vivavoce.metrics.pairwise import acompare_conversations as acompare_conversations
    from vivavoce.metrics.pairwise import compare_conversations as compare_conversations
    from vivavoce.metrics.panel import Confirmed as Confirmed
    from vivavoce.metrics.panel import Panel as Panel
    from vivavoce.metrics.result import Evidence as Evidence
    from vivavoce.metrics.result import MetricResult as MetricResult
    from vivavoce.metrics.streaming import StreamingEvaluator as StreamingEvaluator
    from vivavoce.metrics.types import GoalAchievementResponse as GoalAchievementResponse
    from vivavoce.metrics.types import MultiTurnEvaluationInput as MultiTurnEvaluationInput

_EXPORTS = {
    "AgentGoalAccuracy": "judged.agent_goal_accuracy",
    "AllOf": "composition",
    "AnyOf": "composition",
    "AspectCritic": "judged.aspect_critic",
    "BaseMultiTurnMetric": "metric",
    "Cascade": "composition",
    "Chain": "composition",
    "CoherenceMetric": "judged.coherence",
    "ContextPrecisionMetric": "exact.contexts",
    "ContextRecallMetric": "exact.contexts",
    "ContextRetentionMetric": "judged.context_retention",
    "ConversationCoherenceMetric": "judged.coherence",
    "ConversationCompletenessMetric": "judged.conversation_completeness",
    "ConversationDurationMetric": "exact.response_time",
    "ConversationType": "config",
    "DataLeakageMetric": "judged.data_leakage",
    "EvaluationReport": "evaluation",
    "Evidence": "result",
    "ExactMetric": "measuring",
    "FaithfulnessMetric": "judged.faithfulness",
    "FirstFailureMetric": "judged.first_failure",
    "FunctionMetric": "custom",
    "ContractMetric": "judged.contract",
    "GoalAchievementJudge": "judged.goal",
    "GoalAchievementResponse": "types",
    "GuidelinesMetric": "judged.guidelines",
    "HandoffsMetric": "exact.agents",
    "JointJudge": "joint",
    "JudgedMetric": "judging",
    "KnowledgeRetentionMetric": "judged.knowledge_retention",
    "LanguageMetric": "exact.language",
    "LastAgentMetric": "exact.agents",
    "MessageCountMetric": "exact.counts",
    "MetricConfig": "config",
    "MetricResult": "result",
    "MultiTurnEvaluationInput": "types",
    "OwnToolsMetric": "exact.agents",
    "PairwiseJudge": "pairwise",
    "Panel": "panel",
    "Confirmed": "panel",
    "PersonalDataMetric": "exact.personal_data",
    "ProfanityTermsMetric": "exact.profanity_terms",
    "PromptInjectionMetric": "judged.prompt_injection",
    "PromptMetric": "custom",
    "RefusalMetric": "exact.refusal",
    "RepetitionMetric": "exact.repetition",
    "ForgettingMetric": "exact.forgetting",
    "LeakedToAnotherUserMetric": "exact.leaked_to_another_user",
    "ResponseLengthMetric": "exact.response_length",
    "ResponseQualityMetric": "judged.response_quality",
    "ResponseTimeMetric": "exact.response_time",
    "RoleAdherenceMetric": "judged.role_adherence",
    "RubricsScore": "judged.rubrics_score",
    "RuleMetric": "exact.rule",
    "SafetyMetric": "judged.safety",
    "SemanticRetentionMetric": "exact.semantic_retention",
    "SentimentLexiconMetric": "exact.sentiment",
    "SentimentTrendMetric": "exact.sentiment",
    "SimpleCriteria": "judged.simple_criteria",
    "StreamingEvaluator": "streaming",
    "ToolCallCountMetric": "exact.counts",
    "ToolUseMetric": "judged.tool_use",
    "TopicAdherenceMetric": "judged.topic_adherence",
    "TopicDriftMetric": "exact.topic_drift",
    "ToxicityMetric": "judged.toxicity",
    "TurnCountMetric": "exact.counts",
    "TurnEfficiencyMetric": "judged.turn_efficiency",
    "TurnRelevancyMetric": "judged.turn_relevancy",
    "UserFrustrationMetric": "judged.user_frustration",
    "Weighted": "composition",
    "acompare_conversations": "pairwise",
    "aevaluate_conversation": "evaluation",
    "compare_conversations": "pairwise",
    "create_metric": "factory",
    "evaluate_conversation": "evaluation",
    "evaluate_test_result": "evaluation",
    "function_metric": "custom",
    "metrics": "factory",
    "quality_metrics": "evaluation",
    "security_metrics": "evaluation",
}
__all__ = [
    "AgentGoalAccuracy",
    "AllOf",
    "AnyOf",
    "AspectCritic",
    "BaseMultiTurnMetric",
    "Cascade",
    "Chain",
    "CoherenceMetric",
    "Confirmed",
    "ContextRetentionMetric",
    "ConversationCoherenceMetric",
    "ConversationCompletenessMetric",
    "ConversationDurationMetric",
    "ConversationType",
    "DataLeakageMetric",
    "EvaluationReport",
    "Evidence",
    "ExactMetric",
    "FaithfulnessMetric",
    "FirstFailureMetric",
    "FunctionMetric",
    "GoalAchievementJudge",
    "GoalAchievementResponse",
    "GuidelinesMetric",
    "HandoffsMetric",
    "JointJudge",
    "JudgedMetric",
    "KnowledgeRetentionMetric",
    "LanguageMetric",
    "LastAgentMetric",
    "MessageCountMetric",
    "MetricConfig",
    "MetricResult",
    "MultiTurnEvaluationInput",
    "OwnToolsMetric",
    "PairwiseJudge",
    "Panel",
    "PersonalDataMetric",
    "ProfanityTermsMetric",
    "PromptInjectionMetric",
    "PromptMetric",
    "RefusalMetric",
    "RepetitionMetric",
    "ResponseLengthMetric",
    "ResponseQualityMetric",
    "ResponseTimeMetric",
    "RoleAdherenceMetric",
    "RubricsScore",
    "RuleMetric",
    "SafetyMetric",
    "SemanticRetentionMetric",
    "SentimentLexiconMetric",
    "SentimentTrendMetric",
    "SimpleCriteria",
    "StreamingEvaluator",
    "ToolCallCountMetric",
    "ToolUseMetric",
    "TopicAdherenceMetric",
    "TopicDriftMetric",
    "ToxicityMetric",
    "TurnCountMetric",
    "TurnEfficiencyMetric",
    "TurnRelevancyMetric",
    "UserFrustrationMetric",
    "Weighted",
    "acompare_conversations",
    "aevaluate_conversation",
    "compare_conversations",
    "create_metric",
    "evaluate_conversation",
    "evaluate_test_result",
    "function_metric",
    "metrics",
    "quality_metrics",
    "security_metrics",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used; each metric costs only who uses it."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lazy(f"vivavoce.metrics.{_EXPORTS[name]}:{name}")
