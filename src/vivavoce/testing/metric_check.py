"""`check_metric`: what a metric of your own lacks before others can use it, in plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from vivavoce.comparing.thresholds import compare
from vivavoce.errors import VivavoceError
from vivavoce.grading.metrics import FunctionGrader, grading_metric, is_grading_function
from vivavoce.messages import ConversationHistory, Message
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.custom import FunctionMetric, function_metric
from vivavoce.metrics.metric import BaseMultiTurnMetric, Conversation
from vivavoce.metrics.result import MetricResult
from vivavoce.user_code import foreign_code

CONVERSATION: Sequence[Mapping[str, Any] | Message] = (
    {"role": "user", "content": "When does order 1042 arrive?"},
    {"role": "assistant", "content": "Order 1042 arrives on Friday."},
    {"role": "user", "content": "Thank you!"},
    {"role": "assistant", "content": "You are welcome."},
)
"""The conversation that a metric measures unless another one is given."""
WITHOUT_REPLY = CONVERSATION[:1]
SAMPLE_FIELDS: Mapping[str, Any] = {
    "goal": "Learn when order 1042 arrives.",
    "instructions": "Ask for the day.",
    "context": {"order 1042": "arrives on Friday"},
    "reference": "Order 1042 arrives on Friday.",
}
"""What is known of the conversation, so that a metric that needs any of it has it."""


def check_metric(metric: object, /, *, conversation: Conversation = CONVERSATION, **options: Any) -> list[str]:
    """Return what a metric lacks before others can use it, a sentence for each; an empty list means nothing.

    `metric` is a class, an object, or a function as `function_metric` and `@grader` take it; `options` are those of the
    class. It measures a small conversation, or the one that is given. A judged metric needs `model=`, such as a
    `ScriptedModel`; no other model is asked.

        assert check_metric(Politeness) == []
    """
    label = getattr(metric, "__name__", None) or type(metric).__name__
    instance = _make(metric, label, options)
    if isinstance(instance, str):
        return [instance]
    config: object = getattr(instance, "config", None)
    if not isinstance(config, MetricConfig):
        return [f"{label} has no config: call super().__init__(MetricConfig(name=…, description=…)) in its __init__."]
    return [
        *_missing_words(label, instance, config),
        *_missing_rule(label, instance, config),
        *_failures(label, instance, conversation),
    ]


def _make(metric: object, label: str, options: Mapping[str, Any]) -> BaseMultiTurnMetric | str:
    """Return a metric to try, or the sentence that says why there is none."""
    if isinstance(metric, BaseMultiTurnMetric):
        return f"{label} is made already and takes no options: give its class." if options else metric
    make: Callable[..., BaseMultiTurnMetric]
    if isinstance(metric, type) and issubclass(metric, BaseMultiTurnMetric):
        if undefined := sorted(cast("frozenset[str]", getattr(metric, "__abstractmethods__", frozenset[str]()))):
            return f"{label} does not define {' and '.join(undefined)}."
        make = metric
    elif isinstance(metric, FunctionType):
        make = grading_metric(label, metric) if is_grading_function(metric) else _function_maker(metric)
    else:
        return f"{label} is not a metric: derive it from BaseMultiTurnMetric, or write a function."
    try:
        with foreign_code():
            return make(**options)
    except VivavoceError as error:
        return f"{label} cannot be made: {str(error).rstrip('.?')}."
    except Exception as error:
        return f"{label} cannot be made: {_words(error)}. Give its options a default, or give them to check_metric."


def _function_maker(function: Callable[..., Any]) -> Callable[..., BaseMultiTurnMetric]:
    def make(**options: Any) -> BaseMultiTurnMetric:
        return function_metric(function, **options)

    return make


def _missing_words(label: str, metric: BaseMultiTurnMetric, config: MetricConfig) -> Iterator[str]:
    """Yield what is missing of the words in which people and reports speak of a metric."""
    if not (config.name.strip() or config.class_name.strip()):
        yield f"{label} has no name: set name= in its MetricConfig, which is what its scores are called."
    if not config.description.strip():
        how = "set description= in its MetricConfig to one line on"
        if isinstance(metric, FunctionGrader | FunctionMetric):
            how = "write a docstring whose first line says"
        yield f"{label} has no description: {how} what it measures."


def _missing_rule(label: str, metric: BaseMultiTurnMetric, config: MetricConfig) -> Iterator[str]:
    """Yield what is missing of the rule that says which scores pass."""
    if isinstance(metric, FunctionGrader) or config.score_type == "binary":
        return
    if config.score_type == "categorical":
        if not config.categories:
            yield f"{label} has no categories: set categories= in its MetricConfig, the worst first."
        if not config.passing_categories:
            yield f"{label} does not say which categories pass: set passing_categories= in its MetricConfig."
        return
    highest = config.maximum
    if highest is not None and not config.minimum < highest:
        yield f"{label} has scores from {config.minimum:g} to {highest:g}: minimum must be below maximum."
    if not metric.judged and "direction" not in config.model_fields_set:
        yield (
            f"{label} does not say whether high scores are good: set direction='higher_is_better' or "
            "'lower_is_better' in its MetricConfig."
        )
    if config.threshold is None:
        yield f"{label} has no threshold: set threshold= in its MetricConfig to the first score that passes."
    elif config.threshold < config.minimum or (highest is not None and config.threshold > highest):
        yield f"{label} has a threshold of {config.threshold:g}, which is outside the range of its scores."
    else:
        worst = config.minimum if config.direction == "higher_is_better" else highest
        if worst is not None and compare(config.threshold, "eq", worst):
            yield f"{label} has a threshold of {config.threshold:g}, with which every score passes."


def _failures(label: str, metric: BaseMultiTurnMetric, conversation: Conversation) -> Iterator[str]:
    """Yield what goes wrong when it measures."""
    try:
        with foreign_code():
            metric.fingerprint  # noqa: B018 - computed when it is read
    except Exception as error:
        yield f"{label} has no fingerprint, so its scores cannot be compared later: {_words(error)}."
    if metric.judged and metric.model is None:
        yield f"{label} asks a judge, so nothing was measured: give check_metric a model=, such as a ScriptedModel."
        return
    messages = conversation if isinstance(conversation, ConversationHistory) else [*conversation]
    name = "a small conversation" if conversation is CONVERSATION else "the conversation"
    result = _measure(metric, messages)
    if isinstance(result, str):
        yield f"{label} fails on {name}: {result}."
        return
    if result.state == "skipped":
        yield (
            f"{label} does not apply to {name}: {result.reason}. Give check_metric a conversation= to which it applies."
        )
        return
    if result.value is None and result.raw is None:
        yield f"{label} returns no score: return MetricResult(score=…), or self.skipped(reason)."
    if metric.judged:
        return
    again = _measure(metric, messages)
    if not isinstance(again, str) and (again.state, again.raw, again.value) != (result.state, result.raw, result.value):
        yield (
            f"{label} gives {result.raw} and then {again.raw} for the same conversation; without a judge it must give "
            "the same score each time."
        )
    if isinstance(silent := _measure(metric, WITHOUT_REPLY), str):
        yield f"{label} fails on a conversation without a reply: {silent}. Return self.skipped(reason) there."


def _measure(metric: BaseMultiTurnMetric, conversation: Conversation) -> MetricResult | str:
    """Return the result of a metric, or what went wrong."""
    try:
        with foreign_code():
            result = metric.evaluate(conversation, **SAMPLE_FIELDS)
    except Exception as error:
        return _words(error)
    if result.state != "error":
        return result
    failure = result.failure
    return (result.reason or "it has an error") if failure is None else failure.message


def _words(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
