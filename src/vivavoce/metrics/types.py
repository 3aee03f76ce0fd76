"""The input of metrics, with its transcripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue, field_validator
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from vivavoce.comparing.negations import forbidden_act
from vivavoce.messages import AnyMessage, ConversationHistory, Message, read_message
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.transcript import Shown, Transcript, transcript
from vivavoce.records.score import Finding
from vivavoce.records.trajectory import CallVisibility, Test
from vivavoce.samples.sample import Sample
from vivavoce.validation import construct

__all__ = ["ConversationHistory", "ConversationTurn", "GoalAchievementResponse", "MultiTurnEvaluationInput"]


class _AnyRole(type):
    """Makes every message an instance of `ConversationTurn`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Message)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Message)


class ConversationTurn(metaclass=_AnyRole):
    """A message of any role: builds the right class, and serves as a type annotation."""

    def __new__(
        cls, role: str, content: str | None = "", metadata: dict[str, Any] | None = None, **more: Any
    ) -> AnyMessage:
        """Return a `HumanMessage`, `AIMessage`, `SystemMessage` or `ToolMessage`.

        Raises:
            ValueError: the role is not user, assistant, system or tool.
        """
        extra = {} if metadata is None else {"metadata": metadata}
        return read_message({"role": role, "content": content, **extra, **more})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate a field of this type as a message, or what is read as one."""
        del source
        return handler.generate_schema(AnyMessage)


class GoalAchievementResponse(BaseModel):
    """How far a conversation reached its goal: an answer format for your own judges."""

    achievement_level: str
    confidence: float = Field(ge=0, le=1)
    reasoning: str
    evidence: list[str]
    missing_criteria: list[str] = Field(default_factory=list[str])


class Expected(TypedDict, total=False):
    """What is known of what a conversation should have been, and of how it was held."""

    policy: str | None
    """What the assistant has to go by; only judges see it."""
    reference: JsonValue
    """What should have come out: a text for judges, any JSON value for graders, a list for one value in each turn."""
    outcomes: Sequence[str]
    """The outcomes that the goal requires, where they are known; else a judge lists them."""
    must: Sequence[str]
    """What has to happen."""
    must_not: Sequence[str]
    """What must never happen."""
    calls: CallVisibility | None
    """How many of the assistant's tool calls the conversation shows: `all`, `some`, or `none`."""
    turn_seconds: Sequence[float | None]
    """How long the system under test took in each turn."""
    sample: Sample | None
    """The row that the conversation came of, with whatever else is known, such as its truth."""


class MultiTurnEvaluationInput(BaseModel):
    """A conversation and what is known about it.

    `goal` is what the user wanted; `instructions` how the conversation was to be led; `policy` the rules that the
    assistant works by, for judges alone; `context` anything else a metric may ask for by name, such as `role` or
    `topics`. `reference` is what should have come out, `outcomes` what the goal requires, one by one. `must` and
    `must_not` are what must and must never happen. `calls` is how many of the assistant's tool calls the
    conversation shows, None where it has them all or none. `turn_seconds` is how long the system under test took in
    each turn. `sample` is the row that it came from and `submission` the part that an extractor picked; `state` is what
    the target remembered at the end, and `test` the record of a tester that led it. All four are None if
    unknown. `earlier` has the findings of the same metric about fewer turns, where the conversation goes on.
    `trial` is which repetition of the sample it is, from 0; a judge is asked about each one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    conversation_history: ConversationHistory
    goal: str | None = None
    instructions: str | None = None
    context: dict[str, Any] | None = None
    policy: str | None = None
    reference: str | None = None
    outcomes: tuple[str, ...] = ()
    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    calls: CallVisibility | None = None
    turn_seconds: tuple[float | None, ...] = ()
    sample: Sample | None = None
    submission: str | None = None
    state: Mapping[str, Any] | None = None
    test: Test | None = None
    earlier: tuple[Finding, ...] = ()
    trial: int = 0

    @field_validator("must_not")
    @classmethod
    def _acts(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        for rule in rules:
            forbidden_act(rule)
        return rules

    @property
    def messages(self) -> list[AnyMessage]:
        """The messages of the conversation."""
        return self.conversation_history.messages


def metric_input(
    sample: Sample, messages: Sequence[AnyMessage], seconds: Sequence[float | None] = (), **known: Any
) -> MultiTurnEvaluationInput:
    """Return the input of a metric for a sample and its conversation.

    `known` are further fields of the input: `submission`, `state`, `test`, `trial`, and `calls`.
    """
    context, truth = sample.context, sample.ground_truth
    fields = {
        "conversation_history": construct(ConversationHistory, {"messages": messages, "conversation_id": sample.id}),
        "goal": sample.goal,
        "instructions": sample.instructions,
        "context": context if context is None or isinstance(context, dict) else {"context": context},
        "policy": sample.policy,
        "reference": truth if isinstance(truth, str) else None,
        "must": tuple(sample.must),
        "must_not": tuple(sample.must_not),
        "turn_seconds": tuple(seconds),
        "sample": sample,
        **known,
    }
    return construct(MultiTurnEvaluationInput, fields)


class Reading:
    """The input of metrics, with the transcripts of its conversation; each is written when it is first needed.

    Where a conversation is judged by turns or windows, the first `since` turns have been judged already.
    """

    __slots__ = ("_checkers", "_transcripts", "metric_input", "since")

    def __init__(self, metric_input: MultiTurnEvaluationInput, since: int = 0) -> None:
        self.metric_input = metric_input
        self.since = since
        self._transcripts: dict[Shown, Transcript] = {}
        self._checkers: dict[Shown, Checker] = {}

    @property
    def transcripts(self) -> Iterable[Transcript]:
        """The transcripts that have been written so far."""
        return self._transcripts.values()

    def transcript(self, shown: Shown) -> Transcript:
        """Return the transcript with what is shown of the conversation."""
        cached = self._transcripts.get(shown)
        if cached is None:
            cached = self._transcripts[shown] = transcript(self.metric_input.messages, shown, self.metric_input.policy)
        return cached

    def checker(self, shown: Shown) -> Checker:
        """Return the checker of evidence that was quoted from that transcript."""
        checker = self._checkers.get(shown)
        if checker is None:
            checker = self._checkers[shown] = Checker(self.metric_input.messages, self.transcript(shown))
        return checker

    def after(self, since: int) -> Reading:
        """Return the same conversation, of which the first `since` turns have been judged."""
        return self._sharing(self.metric_input, since)

    def knowing(self, **more: object) -> Reading:
        """Return the same conversation with something else known about it."""
        return self._sharing(self.metric_input.model_copy(update=more), self.since)

    def _sharing(self, metric_input: MultiTurnEvaluationInput, since: int) -> Reading:
        reading = Reading(metric_input, since)
        reading._transcripts, reading._checkers = self._transcripts, self._checkers
        return reading
