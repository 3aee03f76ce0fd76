"""`FaithfulnessMetric`: is what the assistant claims supported by what it had retrieved, and by what tools returned?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Unpack

from pydantic import BaseModel, Field, model_validator

from vivavoce.comparing.thresholds import mean
from vivavoce.messages import AnyMessage, ToolMessage
from vivavoce.metrics.checklist import STATE_WORTH
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions, answered
from vivavoce.metrics.question import Piece, Question, Shape, Verdict, limited
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import Finding, FindingState, to_index, to_number

Support = Literal["supported", "partly", "unsupported", "contradicted"]
WORTH: Mapping[str, float] = {"supported": 1.0, "partly": 0.5, "unsupported": 0.0, "contradicted": 0.0}
STATES: Mapping[Support, FindingState] = {
    "supported": "pass",
    "partly": "partial",
    "unsupported": "fail",
    "contradicted": "fail",
}


class Claim(Shape):
    """One claim of the assistant; the judge counts turns from 1."""

    turn: int
    claim: str
    evidence: list[str]
    support: Support

    @model_validator(mode="after")
    def _has_evidence(self) -> Claim:
        if self.support != "unsupported" and not self.evidence:
            raise ValueError(f"a statement marked {self.support} needs evidence")
        return self


class FaithfulnessReply(Shape):
    """What the judge answers."""

    claims: list[Claim]
    reasoning: str
    confidence: float = Field(ge=0, le=1)


@lru_cache(256)
def faithfulness_reply(turns: tuple[int, ...]) -> type[FaithfulnessReply]:
    """Return the class of an answer about the claims of these turns, by their numbers."""
    return limited(FaithfulnessReply, "claims", Claim, "turn", turns)


class FaithfulnessMetric(JudgedMetric):
    """Judges turn by turn whether the assistant's claims are supported by what it had found; passes from 0.7 up.

    Findings are the `retrieval_context` of messages and the results of tools. The judge lists the claims of each turn
    that has findings of its own, each with the finding that supports or contradicts it: supported counts 1, partly 0.5,
    else 0. The score of a turn is the mean over its claims, that of a conversation the mean over its turns, 0 to 1.

    Ragas' metric of this name splits one answer into statements and checks them in a second call. This one takes one
    call for all turns, and is skipped where nothing was found or nothing is claimed, which others score as perfect.

    Known failure: a claim that is true but in no finding counts as unsupported.
    """

    template: ClassVar[str] = "judged/faithfulness.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(
        {("claim", "pass"): "conversation", ("claim", "partial"): "conversation"}
    )
    of_assistant: ClassVar[bool] = True
    own_variables: ClassVar[frozenset[str]] = frozenset(("turns",))
    nothing: ClassVar[str] = "the assistant claims nothing in turns that retrieved something or called a tool"

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="faithfulness",
            description="Is what the assistant claims supported by what it had found?",
            requires_context=True,
            threshold=0.7,
        )
        super().__init__(config, model, **options)

    def inapplicable(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say why this conversation cannot be judged, None when it can."""
        if reason := super().inapplicable(metric_input):
            return reason
        has_findings = any(map(self._is_finding, metric_input.messages))
        return None if has_findings else "nothing was retrieved, and no result of a tool is shown"

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the turns of a piece that have findings, and these turns."""
        del metric_input
        turns = [turn for turn in answered(written, piece) if turn is not None and _has_findings(written, turn)]
        numbers = tuple(to_number(turn) for turn in turns)
        return (faithfulness_reply(numbers), {"turns": numbers}) if numbers else None

    def read(self, reply: FaithfulnessReply, question: Question) -> Verdict:
        """Return the mean over the turns."""
        claims = [
            question.finding(
                "claim", claim.claim, claim.support, STATES[claim.support], claim.evidence, to_index(claim.turn)
            )
            for claim in reply.claims
        ]
        turns = _by_turn(reply.claims)
        score = float(mean([turn["score"] for turn in turns])) if turns else None
        reasoning = reply.reasoning if turns else self.nothing
        return Verdict(score, reasoning, reply.confidence, claims, extra={"by_turn": turns}, turns=len(turns))

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Return whether the mean over the turns would pass with other findings."""
        del verdict
        turns: dict[int | None, list[float]] = {}
        for finding in findings:
            turns.setdefault(finding.turn, []).append(STATE_WORTH[finding.state])
        means = [sum(worth) / len(worth) for worth in turns.values()]
        return self.config.passes(sum(means) / len(means)) if means else None

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the mean over the turns of all pieces, with their claims."""
        whole = super().merge(verdicts)
        turns = [turn for verdict in verdicts for turn in verdict.extra["by_turn"]]
        reasoning = whole.reasoning if whole.score is not None else self.nothing
        return replace(whole, reasoning=reasoning, extra={"by_turn": turns})

    def _is_finding(self, message: AnyMessage) -> bool:
        if isinstance(message, ToolMessage):
            return self.shown.tools
        return self.shown.retrieved and bool(message.retrieval_context)


def _has_findings(transcript: Transcript, turn: int) -> bool:
    return any(line.startswith(("retrieved: ", "result ")) for line in transcript.turns[turn])


def _by_turn(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Return the score of each turn that has claims, by its index."""
    worth: dict[int, list[float]] = {}
    for claim in claims:
        worth.setdefault(to_index(claim.turn), []).append(WORTH[claim.support])
    return [
        {"turn": turn, "score": sum(values) / len(values), "claims": len(values)}
        for turn, values in sorted(worth.items())
    ]
