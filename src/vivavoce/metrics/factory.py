"""Metrics by name, with their options: the short name, that of the class, or that of a file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, Required, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from vivavoce.comparing.thresholds import compare
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.config import MetricConfig, Scope, read_options
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model
from vivavoce.plugins import Registry, check_may_name_file, lazy
from vivavoce.validation import AS_WRITTEN, find_truth_as_number, number_expected

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
        "expect": "vivavoce.grading.expect:ExpectMetric",
    },
    of_function="vivavoce.grading.metrics:grading_metric",
    admit="vivavoce.metrics.factory:admit_metric",
)
"""Everything that scores by name: metrics, and grading functions as metrics.

A user-defined one is added with `metrics.add(name, class)`, `@grader` or a plugin.
"""

CLASSES = {place.partition(":")[2]: name for name, place in (_JUDGED | _EXACT).items()}
"""Short names by the names of classes."""


def admit_metric(name: str, loaded: object, plugin: str) -> object:
    """Return a metric or a grading function of a plugin.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(loaded, FunctionType) or (isinstance(loaded, type) and issubclass(loaded, BaseMultiTurnMetric)):
        return loaded
    kind = f"the class {loaded.__name__}" if isinstance(loaded, type) else f"a {type(loaded).__name__}"
    raise UsageError(
        f"the metric '{name}' of the plugin '{plugin}' is {kind}; it must be a subclass of BaseMultiTurnMetric, or a "
        "grading function"
    )


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
        if (path := find_truth_as_number(hints[name], options[name])) is not None:
            raise UsageError(f"option '{name}': {number_expected(path)}")
        try:
            checked[name] = TypeAdapter(hints[name]).validate_python(options[name], context=AS_WRITTEN)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UsageError(f"option '{name}': {first['msg']}, got {first['input']!r}") from error
        except PydanticSchemaGenerationError:
            continue  # a type of the user, which the constructor checks itself
    return checked


class Choice(TypedDict, total=False):
    """A metric by its name with what it is made with, in the words of a grader of a suite; only `metric` is needed.

    `name` is what its scores are called and `config` its own options; `threshold` is in its own terms. With an
    `extractor` it measures the text that this picks. `model`, `temperature` and `settings` say whom it asks, and how.
    """

    metric: Required[str]
    name: str
    threshold: float | None
    scope: Scope | None
    config: Mapping[str, Any]
    extractor: str | None
    extractor_config: Mapping[str, Any]
    model: Any
    temperature: float | None
    settings: Mapping[str, Any]


_OF_GRADERS = ("extractor", "extractor_config", "scope", "threshold")
"""What a grading function takes itself."""


def choose_metric(
    choice: str | Choice, model: ModelLike | None = None, base: Path | None = None
) -> BaseMultiTurnMetric:
    """Return a new metric, by its name or as a `Choice` says; `model` judges where the choice names no judge.

    Files that it names stand beside `base`, the current folder unless it is given.

    Raises:
        UsageError: no metric has that name, or it has no such option.
    """
    how = read_options(Choice, {"metric": choice} if isinstance(choice, str) else choice)
    kind = named_metric(how["metric"])
    judge = how.get("model") or model
    return make_chosen(kind, how, base or Path(), None if judge is None else as_model(judge))


def make_chosen(kind: MetricClass, how: Choice, base: Path, judge: Model | None = None) -> BaseMultiTurnMetric:
    """Return a metric of a class, made as a choice says.

    Raises:
        UsageError: it has no such option, or the value is wrong.
    """
    name = how["metric"]
    options = _config(how, base)
    if "extractor" in inspect.signature(kind).parameters:
        grader_options: dict[str, Any] = {
            option: how.get(option) for option in _OF_GRADERS if how.get(option) is not None
        }
        if judge is not None and kind.may_ask:
            options["model"] = judge
        return make_metric(kind, name, judging=_judging(how), **options, **grader_options)
    if judge is not None and kind.judged:
        options["model"] = judge
    scope = how.get("scope")
    apart = how.get("extractor") is not None or (scope == "turn" and not _takes_scope(kind))
    if scope in ("turn", "window") and not apart:
        options["scope"] = scope
    metric = make_metric(kind, name, judging=_judging(how), **options)
    if (threshold := how.get("threshold")) is not None:
        metric.config = passing_from(metric, threshold)
    _check_can_fail(metric.name, metric.config)
    return lazy("vivavoce.grading.metrics:extracted")(metric, how, base) if apart else metric


def passing_from(metric: BaseMultiTurnMetric, threshold: float) -> MetricConfig:
    """Return the configuration of a metric with a threshold from which its scores pass.

    Raises:
        UsageError: the threshold lies outside the range of its scores, or lets every score pass.
    """
    config = metric.config
    if config.score_type == "categorical":
        raise UsageError(f"'{metric.name}' returns a label, not a score; set passing_categories in config instead")
    if threshold < config.minimum or (config.maximum is not None and threshold > config.maximum):
        highest = "" if config.maximum is None else f" to {config.maximum:g}"
        raise UsageError(
            f"the scores of '{metric.name}' go from {config.minimum:g}{highest}; got threshold: {threshold:g}"
        )
    passing = config.model_copy(update={"threshold": threshold})
    _check_can_fail(metric.name, passing)
    return passing


def _check_can_fail(name: str, config: MetricConfig) -> None:
    """Raise if the threshold of a metric is the worst score that it can give."""
    higher = config.direction == "higher_is_better"
    worst = config.minimum if higher else config.maximum
    if config.threshold is None or worst is None or not compare(config.threshold, "eq", worst):
        return
    side = "above" if higher else "below"
    raise UsageError(
        f"every score of '{name}' passes with threshold: {config.threshold:g}; write a number {side} {worst:g}"
    )


LOCAL = "local"
"""The embedder that needs no address."""


def reaches_out(config: Mapping[str, Any]) -> str | None:
    """Return an option that names a file or an address, None where all are data."""
    for option in ("prompt_path", "extractor", "extractor_config"):
        if option in config:
            return option
    return "embedder" if config.get("embedder", LOCAL) != LOCAL else None


def _config(how: Choice, base: Path) -> dict[str, Any]:
    options: dict[str, Any] = {"name": how["name"]} if "name" in how else {}
    options |= how.get("config", {})
    for option in ("model", "settings", "extractor", "extractor_config"):
        if option in options:
            raise UsageError(f"{option} belongs next to config, not in it")
    if "prompt_path" in options:
        check_may_name_file()
        options["prompt"] = base / str(options.pop("prompt_path"))
    return options


def _judging(how: Choice) -> dict[str, Any] | None:
    if "temperature" not in how and "settings" not in how:
        return None
    return {**({"temperature": how["temperature"]} if "temperature" in how else {}), **how.get("settings", {})}


def _takes_scope(kind: MetricClass) -> bool:
    parameters = inspect.signature(kind).parameters
    return "scope" in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
