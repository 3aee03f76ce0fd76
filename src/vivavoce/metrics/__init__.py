"""Metrics: what measures a conversation, judged by a model or computed exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vivavoce.lazy_names import lazy_names

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
    from vivavoce.metrics.stored_conversation import evaluate_test_result as evaluate_test_result
    from vivavoce.metrics.streaming import StreamingEvaluator as StreamingEvaluator
    from vivavoce.metrics.types import GoalAchievementResponse as GoalAchievementResponse
    from vivavoce.metrics.types import MultiTurnEvaluationInput as MultiTurnEvaluationInput


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".composition": ("AllOf", "AnyOf", "Cascade", "Chain", "Weighted"),
        ".config": ("ConversationType", "MetricConfig"),
        ".custom": ("FunctionMetric", "PromptMetric", "function_metric"),
        ".evaluation": (
            "EvaluationReport",
            "aevaluate_conversation",
            "evaluate_conversation",
            "quality_metrics",
            "security_metrics",
        ),
        ".exact.agents": ("HandoffsMetric", "LastAgentMetric", "OwnToolsMetric"),
        ".exact.contexts": ("ContextPrecisionMetric", "ContextRecallMetric"),
        ".exact.counts": ("MessageCountMetric", "ToolCallCountMetric", "TurnCountMetric"),
        ".exact.forgetting": ("ForgettingMetric",),
        ".exact.language": ("LanguageMetric",),
        ".exact.leaked_to_another_user": ("LeakedToAnotherUserMetric",),
        ".exact.personal_data": ("PersonalDataMetric",),
        ".exact.profanity_terms": ("ProfanityTermsMetric",),
        ".exact.refusal": ("RefusalMetric",),
        ".exact.repetition": ("RepetitionMetric",),
        ".exact.response_length": ("ResponseLengthMetric",),
        ".exact.response_time": ("ConversationDurationMetric", "ResponseTimeMetric"),
        ".exact.rule": ("RuleMetric",),
        ".exact.semantic_retention": ("SemanticRetentionMetric",),
        ".exact.sentiment": ("SentimentLexiconMetric", "SentimentTrendMetric"),
        ".exact.topic_drift": ("TopicDriftMetric",),
        ".factory": ("create_metric", "metrics"),
        ".joint": ("JointJudge",),
        ".judged.agent_goal_accuracy": ("AgentGoalAccuracy",),
        ".judged.aspect_critic": ("AspectCritic",),
        ".judged.coherence": ("CoherenceMetric", "ConversationCoherenceMetric"),
        ".judged.context_retention": ("ContextRetentionMetric",),
        ".judged.contract": ("ContractMetric",),
        ".judged.conversation_completeness": ("ConversationCompletenessMetric",),
        ".judged.data_leakage": ("DataLeakageMetric",),
        ".judged.faithfulness": ("FaithfulnessMetric",),
        ".judged.first_failure": ("FirstFailureMetric",),
        ".judged.goal": ("GoalAchievementJudge",),
        ".judged.guidelines": ("GuidelinesMetric",),
        ".judged.knowledge_retention": ("KnowledgeRetentionMetric",),
        ".judged.prompt_injection": ("PromptInjectionMetric",),
        ".judged.response_quality": ("ResponseQualityMetric",),
        ".judged.role_adherence": ("RoleAdherenceMetric",),
        ".judged.rubrics_score": ("RubricsScore",),
        ".judged.safety": ("SafetyMetric",),
        ".judged.simple_criteria": ("SimpleCriteria",),
        ".judged.tool_use": ("ToolUseMetric",),
        ".judged.topic_adherence": ("TopicAdherenceMetric",),
        ".judged.toxicity": ("ToxicityMetric",),
        ".judged.turn_efficiency": ("TurnEfficiencyMetric",),
        ".judged.turn_relevancy": ("TurnRelevancyMetric",),
        ".judged.user_frustration": ("UserFrustrationMetric",),
        ".judging": ("JudgedMetric",),
        ".measuring": ("ExactMetric",),
        ".metric": ("BaseMultiTurnMetric",),
        ".pairwise": ("PairwiseJudge", "acompare_conversations", "compare_conversations"),
        ".panel": ("Confirmed", "Panel"),
        ".result": ("Evidence", "MetricResult"),
        ".stored_conversation": ("evaluate_test_result",),
        ".streaming": ("StreamingEvaluator",),
        ".types": ("GoalAchievementResponse", "MultiTurnEvaluationInput"),
    },
)
