"""Metrics by name: the short one, such as `goal_achievement`, that of the class, or that of a grading function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.plugins import Registry

MetricClass = type[BaseMultiTurnMetric]

_JUDGED = {
    "goal_achievement": "goal:GoalAchievementJudge",
    "contract": "contract:ContractMetric",
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
    "first_failure": "first_failure:FirstFailureMetric",
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
    "rule": "rule:RuleMetric",
    "handoffs": "agents:HandoffsMetric",
    "own_tools": "agents:OwnToolsMetric",
    "last_agent": "agents:LastAgentMetric",
    "context_precision": "contexts:ContextPrecisionMetric",
    "context_recall": "contexts:ContextRecallMetric",
    "personal_data": "personal_data:PersonalDataMetric",
    "profanity_terms": "profanity_terms:ProfanityTermsMetric",
    "sentiment_lexicon": "sentiment:SentimentLexiconMetric",
    "sentiment_trend": "sentiment:SentimentTrendMetric",
    "language": "language:LanguageMetric",
    "topic_drift": "topic_drift:TopicDriftMetric",
    "semantic_retention": "semantic_retention:SemanticRetentionMetric",
    "forgetting": "forgetting:ForgettingMetric",
    "leaked_to_another_user": "leaked_to_another_user:LeakedToAnotherUserMetric",
}

_FUNCTIONS = (
    "exact_match",
    "contains",
    "regex_match",
    "ascii_printable_only",
    "json_schema",
    "numeric",
    "fuzzy_ratio",
    "trajectory_match",
    "tool_call_accuracy",
    "tool_call_f1",
    "recorded",
)
_OF_TESTS = ("goal_achieved", "target_passed")

metrics: Registry[MetricClass] = Registry(
    "metric",
    {
        **{name: f"vivavoce.metrics.judged.{place}" for name, place in _JUDGED.items()},
        **{name: f"vivavoce.metrics.exact.{place}" for name, place in _EXACT.items()},
        **{name: f"vivavoce.grading.graders:{name}" for name in _FUNCTIONS},
        **{name: f"vivavoce.grading.outcomes:{name}" for name in _OF_TESTS},
        "expect": "vivavoce.grading.expect_metric:ExpectMetric",
    },
    of_function="vivavoce.grading.function_grader:grading_metric",
)
"""Everything that scores by name: metrics, and grading functions as metrics.

A user-defined one is added with `metrics.add(name, class)`, `@grader` or an entry point.
"""

CLASSES = {place.partition(":")[2]: name for name, place in (_JUDGED | _EXACT).items()}
"""Short names by the names of classes."""


def create_metric(name: str, /, *, judging: Mapping[str, Any] | None = None, **options: Any) -> BaseMultiTurnMetric:
    """Return a new metric, by its short name or that of its class; `judging` are the settings of its judge, if any.

    Raises:
        UsageError: no metric has that name, or it has no such option.
    """
    return make_metric(named_metric(name), name, judging=judging, **options)


def named_metric(name: str) -> MetricClass:
    """Return the class of a metric, by its short name or its own.

    Raises:
        UsageError: no metric has that name.
    """
    return metrics.get(CLASSES.get(name, name))


def make_metric(
    kind: MetricClass, name: str, /, *, judging: Mapping[str, Any] | None = None, **options: Any
) -> BaseMultiTurnMetric:
    """Return a new metric of a class; `name` is what errors call it.

    Raises:
        UsageError: it has no such option, or the value is wrong.
    """
    if judging is not None and kind.takes_settings:
        options["settings"] = judging
    try:
        return kind(**_checked(kind, options))
    except TypeError as error:
        raise UsageError(f"metric '{name}': {str(error).rpartition('__init__() ')[2]}") from error
    except UsageError as error:
        raise UsageError(f"metric '{name}': {error}") from error


def _checked(kind: MetricClass, options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options that a class names itself; those that all metrics share are checked where they are read."""
    hints = get_type_hints(kind.__init__)
    parameters = inspect.signature(kind).parameters.values()
    keyword_options = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    known = [p.name for p in parameters]
    unknown = (
        [] if any(p.kind is p.VAR_KEYWORD for p in parameters) else [name for name in options if name not in known]
    )
    if unknown:
        raise UsageError(f"no option '{unknown[0]}'{did_you_mean(unknown[0], known)}")
    checked = dict(options)
    for name in keyword_options & hints.keys() & options.keys():
        try:
            checked[name] = TypeAdapter(hints[name]).validate_python(options[name])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UsageError(f"option '{name}': {first['msg']}, got {first['input']!r}") from error
        except PydanticSchemaGenerationError:
            continue  # a type of the user, which the constructor checks itself
    return checked
