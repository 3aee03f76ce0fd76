"""`AgentGoalAccuracy`: did the conversation reach what was wanted? Yes or no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Unpack

from pydantic import Field

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.question import Question, Shape, Verdict, merged
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import FindingState


class Outcome(Shape):
    """One outcome that was wanted."""

    outcome: str
    evidence: list[str]
    reached: bool


class AccuracyReply(Shape):
    """What the judge answers."""

    outcomes: list[Outcome] = Field(min_length=1)
    reasoning: str
    confidence: float = Field(ge=0, le=1)


class AgentGoalAccuracy(JudgedMetric):
    """Judges whether the conversation reached what was wanted: true (1.0) when every outcome was, else false.

    What was wanted is the conversation's `reference`; without one, its `goal`; without that, what the user asks for;
    `extra["compared_with"]` says which. `reference=True` needs a reference, `reference=False` never looks at it, as
    Ragas' two metrics of this name do. Of a conversation in pieces, one that shows all of the reference or the goal is
    enough; an inferred goal has to be reached in each.

    Ragas infers an end state in a first call, and compares in a second that sees no word of the conversation. This one
    takes one call that sees all of it, tool calls and results too, and shows each outcome with its evidence.

    Known failure: it is all or nothing; one missed outcome of many is a failure like any other.
    """

    template: ClassVar[str] = "judged/agent_goal_accuracy.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule({("outcome", "pass"): "act"})
    reply = AccuracyReply

    def __init__(
        self, model: ModelLike | None = None, *, reference: bool | None = None, **options: Unpack[JudgingOptions]
    ) -> None:
        self.reference = reference
        config = MetricConfig(
            class_name=type(self).__name__,
            name="agent_goal_accuracy",
            description="Did the conversation reach what was wanted?",
            score_type="binary",
            requires_ground_truth=bool(reference),
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Whether the reference counts."""
        return {"reference": self.reference}

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the reference, where it counts."""
        return {"reference": None if self.reference is False else metric_input.reference}

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say that the reference is missing, where one is required."""
        missing = self.reference and not metric_input.reference
        return "needs a reference, and none is given" if missing else None

    def read(self, reply: AccuracyReply, question: Question) -> Verdict:
        """Return whether every outcome was reached."""
        outcomes = [
            question.finding(
                "outcome",
                outcome.outcome,
                "reached" if outcome.reached else "not reached",
                _state(outcome.reached),
                outcome.evidence,
            )
            for outcome in reply.outcomes
        ]
        reached = all(outcome.reached for outcome in reply.outcomes)
        extra = {"compared_with": self._compared_with(question.metric_input)}
        return Verdict(reached, reply.reasoning, reply.confidence, outcomes, extra=extra, turns=question.piece.judged)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return whether one piece reached what was wanted; where the goal was inferred, whether every piece did."""
        compared_with = verdicts[0].extra["compared_with"]
        reached = (all if compared_with == "inferred" else any)(bool(verdict.score) for verdict in verdicts)
        return merged(reached, verdicts, compared_with=compared_with)

    def _compared_with(self, metric_input: MultiTurnEvaluationInput) -> str:
        if metric_input.reference and self.reference is not False:
            return "reference"
        return "goal" if metric_input.goal else "inferred"


def _state(reached: bool) -> FindingState:
    return "pass" if reached else "fail"
