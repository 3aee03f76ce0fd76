"""`BaseMultiTurnMetric`: what every metric is, and all that one of your own needs to be."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Unpack

from pydantic import JsonValue, ValidationError

from vivavoce.conversations.objects import Live, read_conversation
from vivavoce.errors import BudgetExhausted, Fault, GraderFault
from vivavoce.messages import ConversationHistory, Message, describe
from vivavoce.metrics.config import ConversationType, Manner, MetricConfig
from vivavoce.metrics.question import Call, Plan, carry_out
from vivavoce.metrics.result import About, MetricResult
from vivavoce.metrics.types import Expected, MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, identity_of
from vivavoce.pacing.loops import call, wait_for
from vivavoce.records.score import Raw, failure_of, usage_of
from vivavoce.samples.sample import Sample
from vivavoce.user_code import foreign_code, skip_reason, source_of
from vivavoce.validation import shows_options

Conversation = ConversationHistory | Iterable[Mapping[str, Any] | Message | Live]


class BaseMultiTurnMetric(ABC):
    """Measures a conversation.

    A metric of your own says what it is in `config` and measures in `evaluate_conversation`, or in its async twin;
    everything else follows. What it raises becomes a result with the score `"error"`.
    """

    conversation_type = ConversationType.MULTI_TURN
    judged = False
    """Whether it asks a model."""
    may_ask = False
    """Whether it asks a model where a row wants that, though it is not `judged`."""
    waits = True
    """Whether measuring may have to wait for something."""
    takes_settings = False
    """Whether a metric of this class can be made with `settings` of its judge."""
    inner_metrics: tuple[BaseMultiTurnMetric, ...] = ()
    """The metrics that it is made of."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Show the options of a class where it takes some."""
        super().__init_subclass__(**more)
        if "__init__" in vars(cls):
            shows_options(cls.__init__)

    def __init__(self, config: MetricConfig, model: ModelLike | None = None) -> None:
        self.config = config
        self.model: Model | None = None if model is None else as_model(model)

    @property
    def name(self) -> str:
        """The name of its results."""
        return self.config.name or self.config.class_name or type(self).__name__

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides the scores: of a metric of your own, its code and its configuration."""
        judge = self.model and identity_of(self.model)
        text = f"{source_of(type(self))}\0{self.config.model_dump_json()}\0{judge}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @property
    def needs_threshold(self) -> bool:
        """Whether it lacks a threshold that it needs: its scores have no highest one to pass by default."""
        config = self.config
        return config.score_type == "numeric" and config.maximum is None and config.threshold is None

    @abstractmethod
    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation."""

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation without holding up the event loop."""
        return await call(self.evaluate_conversation, evaluation_input)

    @shows_options
    def evaluate(
        self,
        conversation_history: Conversation,
        goal: str | None = None,
        instructions: str | None = None,
        context: dict[str, Any] | None = None,
        **known: Unpack[Expected],
    ) -> MetricResult:
        """Measure a conversation, as an object or messages; works where an event loop is running too.

        Connections to the judge are closed at the end; for many conversations, `vivavoce.evaluate` keeps them.

        Raises:
            ValueError: the messages are malformed.
            BudgetExhausted: a limit on calls or cost is reached.
        """

        async def once() -> MetricResult:
            try:
                return await self.aevaluate(conversation_history, goal, instructions, context, **known)
            finally:
                await self.close()

        return wait_for(once())

    @shows_options
    async def aevaluate(
        self,
        conversation_history: Conversation,
        goal: str | None = None,
        instructions: str | None = None,
        context: dict[str, Any] | None = None,
        **known: Unpack[Expected],
    ) -> MetricResult:
        """Async version of `evaluate`."""
        metric_input = evaluation_input(
            conversation_history, goal=goal, instructions=instructions, context=context, **known
        )
        return await self.measured(metric_input)

    async def close(self) -> None:
        """Close the connections of what it asks; a later question opens new ones."""
        if self.model is not None:
            await self.model.close()

    def measured(self, metric_input: MultiTurnEvaluationInput) -> Coroutine[Any, Any, MetricResult]:
        """Measure a conversation; errors become results.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached, which ends more than this measurement.
        """
        return carry_out(self.plan_for(Reading(metric_input)))

    def plan_for(self, reading: Reading) -> Plan[MetricResult]:
        """Yield what has to be waited for, and return the result; an error becomes one.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        try:
            with foreign_code():
                return self.finished((yield from self.visible_steps(reading)))
        except BudgetExhausted:
            raise
        except Exception as error:
            reason = skip_reason(error)
            return self.failed(error) if reason is None else self.skipped(reason)

    def visible_steps(self, reading: Reading) -> Plan[MetricResult]:
        """Yield the one call that measures a conversation; what a user-defined metric does in it cannot be seen."""
        return (yield Call(partial(call, self.aevaluate_conversation, reading.metric_input)))

    @property
    def stepwise(self) -> bool:
        """Whether a caller can run its steps."""
        return False

    @property
    def manner(self) -> Manner | None:
        """How it asks a model; None where it asks none, or where that is unknown."""
        return None

    def first_decides(self, metric_input: MultiTurnEvaluationInput) -> bool:
        """Say whether the answer about the first piece of a conversation decides what is asked about the others."""
        del metric_input
        return False

    def planned_calls(self, reading: Reading) -> int:
        """Return how many calls it makes at most for a conversation."""
        del reading
        return int(self.judged)

    def finished(self, result: object) -> MetricResult:
        """Return a result with its name, value and reason, and whether it passes; a user's metric may lack them."""
        if not isinstance(result, MetricResult):
            raise GraderFault(f"{self.name} returned a {type(result).__name__}, not a MetricResult", kind="format")
        added: dict[str, Any] = {} if result.name else {"name": self.name}
        if result.raw is not None and (result.value is None or result.passed is None):
            value, passed = self.config.scored(result.raw, result.passed, result.value)
            added |= {"value": value, "passed": passed}
        if result.reason is None and result.state != "scored":
            added["reason"] = result.failure.message if result.failure else "the metric does not apply"
        return result.model_copy(update=added) if added else result

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Return which input this metric lacks, whatever the conversation is; None if it has all."""
        del metric_input
        return None

    def failed(self, error: Exception, **more: Any) -> MetricResult:
        """Return the result of a measurement that broke, with the usage of the failed calls."""
        failure = failure_of(error, "judge" if self.judged else "grader")
        more.setdefault("usage", usage_of(error))
        cause = error.__cause__ if isinstance(error, Fault) and error.__cause__ is not None else error
        return MetricResult.model_construct(
            name=self.name,
            state="error",
            failure=failure,
            reason=failure.message,
            confidence=0.0,
            about=About(self.config.score_type, exception=type(cause).__name__),
            **more,
        )

    def skipped(self, reason: str, **more: Any) -> MetricResult:
        """Return the result of a metric that does not apply."""
        about = About(self.config.score_type)
        return MetricResult.model_construct(name=self.name, state="skipped", reason=reason, about=about, **more)


def evaluation_input(conversation: Conversation, **known: Any) -> MultiTurnEvaluationInput:
    """Return the input of a metric for a conversation in any form.

    Raises:
        ValueError: the messages are malformed, or `known` holds something else than the fields of what is returned.
    """
    if isinstance(conversation, ConversationHistory):
        history = conversation
    else:  # these messages have just been validated
        history = ConversationHistory.model_construct(messages=read_conversation(conversation), conversation_id=None)
    try:
        truth = known.get("reference")
        if truth is None or isinstance(truth, str):
            return MultiTurnEvaluationInput(conversation_history=history, **known)
        if known.get("sample") is None:  # only judges read a reference, and they read text
            known["sample"] = _sample_of(history, truth, known)
        return MultiTurnEvaluationInput.model_validate({**known, "conversation_history": history, "reference": None})
    except ValidationError as error:
        raise ValueError(describe(error)) from error


def _sample_of(history: ConversationHistory, truth: JsonValue, known: Mapping[str, Any]) -> Sample:
    names = ("goal", "instructions", "policy", "context", "must", "must_not")
    fields: dict[str, Any] = {name: known[name] for name in names if known.get(name)}
    messages = list(history.messages)
    return Sample(id=history.conversation_id or "", messages=messages, ground_truth=truth, **fields)


class StepwiseMetric(BaseMultiTurnMetric):
    """A metric that measures a conversation step by step.

    A subclass may define `aevaluate_conversation` instead, which may call the one here; its steps are then carried out
    by itself alone.
    """

    @abstractmethod
    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Yield what has to be asked or waited for; return the result."""

    @property
    def stepwise(self) -> bool:
        """Whether its steps can be carried out by others."""
        return type(self).aevaluate_conversation is StepwiseMetric.aevaluate_conversation

    def visible_steps(self, reading: Reading) -> Plan[MetricResult]:
        """Return its steps, or one call where it has a way of its own."""
        return self.steps_for(reading) if self.stepwise else super().visible_steps(reading)

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation."""
        return wait_for(self.aevaluate_conversation(evaluation_input))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation.

        Raises:
            ModelFault: a judge failed, or answered outside the shape that it was asked for.
        """
        return await carry_out(self.steps_for(Reading(evaluation_input)))


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
