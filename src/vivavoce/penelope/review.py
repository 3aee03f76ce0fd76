"""`TesterReview`: did the tester play its part, or is the test's outcome its own doing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Unpack, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.messages import AnyMessage, HumanMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.pieces import Piece
from vivavoce.metrics.question import Question
from vivavoce.metrics.transcript import Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.metrics.verdict import Verdict, merged
from vivavoce.models.custom import ModelLike
from vivavoce.penelope.prompts import HERE
from vivavoce.records.score import Finding, FindingState

FaultKind = Literal["broke_character", "invented_fact", "stopped_early", "contradiction", "leak"]
BRIEF = ("scenario", "persona", "facts", "restrictions")
"""The parts of the tester's brief in the context, besides the goal and the instructions."""


class TesterFault(BaseModel):
    """One thing that the tester did wrong; `decisive` says that without it the test could have ended otherwise."""

    __test__: ClassVar[bool] = False
    model_config = ConfigDict(extra="forbid")

    kind: FaultKind
    what: str
    evidence: list[str]
    decisive: bool


class ReviewReply(BaseModel):
    """What the judge answers; no faults is an answer too."""

    model_config = ConfigDict(extra="forbid")

    faults: list[TesterFault]
    reasoning: str
    confidence: float = Field(ge=0, le=1)


class TesterReview(JudgedMetric):
    """Judges the user's side of a conversation that a tester led: true where no fault of the tester was decisive.

    The brief is the goal, the instructions, and of the context `scenario`, `persona`, `facts` and `restrictions`;
    `context["ended_by"]` is `tester` where the tester ended the conversation itself. Every fault that the judge names
    is a finding. One counts only if a quote of it stands in what the user said, and that of stopping early
    only if the tester did stop; `data["dismissed"]` says why one does not count.

    Known failure: whether a fault was decisive is the judge's guess; to know it, hold the conversation again.
    """

    __test__: ClassVar[bool] = False
    template: ClassVar[str] = str(HERE / "tester_review.jinja")
    reply = ReviewReply
    own_variables: ClassVar[frozenset[str]] = frozenset((*BRIEF, "left"))

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="tester_review",
            description="Did the tester play its part?",
            score_type="binary",
        )
        super().__init__(config, model, **options)

    def inapplicable(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say why this conversation cannot be judged, None when it can."""
        if reason := super().inapplicable(metric_input):
            return reason
        return None if _user_messages(metric_input) else "the user says nothing in this conversation"

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the brief."""
        context = metric_input.context or {}
        return {name: _plain(context.get(name)) for name in BRIEF}

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece, and the brief; how it ended is asked of the last piece only."""
        del written
        return self.reply, {**self.variables(metric_input), "left": _tester_left(metric_input, piece)}

    def read(self, answer: Mapping[str, Any], question: Question) -> Verdict:
        """Return whether no fault that counts was decisive."""
        reply = ReviewReply.model_validate(answer, strict=True)
        messages = _user_messages(question.metric_input)
        question = replace(question, checker=Checker(messages, transcript(messages)))
        tester_left = _tester_left(question.metric_input, question.piece)
        faults = [_judged(question, fault, tester_left) for fault in reply.faults]
        return Verdict(_innocent(faults), reply.reasoning, reply.confidence, faults, turns=question.piece.judged)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict over the faults of all pieces."""
        faults = [fault for verdict in verdicts for fault in verdict.findings]
        return merged(_innocent(faults), verdicts, faults)


def _user_messages(metric_input: MultiTurnEvaluationInput) -> list[AnyMessage]:
    return [message for message in metric_input.messages if isinstance(message, HumanMessage)]


def _tester_left(metric_input: MultiTurnEvaluationInput, piece: Piece) -> bool:
    """Say whether the tester ended the conversation at the end of a piece; each message of the user begins a turn."""
    return (metric_input.context or {}).get("ended_by") == "tester" and piece.last == len(_user_messages(metric_input))


def _judged(question: Question, fault: TesterFault, tester_left: bool) -> Finding:
    """Return a fault as a finding, with why it does not count, None where it does."""
    finding = question.finding("tester fault", fault.what, fault.kind.replace("_", " "), "fail", fault.evidence)
    dismissed = None
    if fault.kind == "stopped_early":
        dismissed = None if tester_left else "the tester did not end this conversation"
    elif not any(quote.verified for quote in finding.evidence):
        dismissed = "its evidence is in no message of the user" if finding.evidence else "it has no evidence"
    data = {"kind": fault.kind, "decisive": fault.decisive, "dismissed": dismissed}
    state: FindingState = "skip" if dismissed else "fail" if fault.decisive else "partial"
    return finding.model_copy(update={"state": state, "blame": "tester", "data": data})


def _innocent(faults: Sequence[Finding]) -> bool:
    return not any(fault.state == "fail" for fault in faults)


def _plain(value: object) -> object:
    """Return a value in a form that prompts quote; any other value becomes text."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_defaults=True)
    if value is None or isinstance(value, str | Mapping | list | tuple):
        return cast("object", value)
    return str(value)
