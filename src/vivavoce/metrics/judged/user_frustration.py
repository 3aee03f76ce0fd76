"""`UserFrustrationMetric`: is the user frustrated with the assistant, and is it put right in the end?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Unpack

from pydantic import Field

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.question import Question, Shape, Verdict, merged
from vivavoce.models.custom import ModelLike
from vivavoce.records.score import FindingState


class Sign(Shape):
    """One sign of frustration."""

    what: str
    evidence: list[str] = Field(min_length=1)


class FrustrationReply(Shape):
    """What the judge answers; no signs is an answer too."""

    signs: list[Sign]
    reasoning: str
    settled: bool
    confidence: float = Field(ge=0, le=1)


class UserFrustrationMetric(JudgedMetric):
    """Judges whether the user is frustrated with the assistant: `unresolved`, `resolved` or `none`; the first fails.

    The judge quotes each sign of it, and says whether it is gone at the end. No sign: `none`; otherwise the end. The
    turns with verified signs are in `extra["turns"]`. MLflow's scorer of this name has the same three values, and
    asks for one of them alone.

    Known failure: a user who leaves without a word shows none.
    """

    template: ClassVar[str] = "judged/user_frustration.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(
        absence="a user is not frustrated where there is no sign of it"
    )
    reply = FrustrationReply
    of_user: ClassVar[bool] = True

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="user_frustration",
            description="Is the user frustrated with the assistant, and is it put right in the end?",
            score_type="categorical",
            categories=("unresolved", "resolved", "none"),
            passing_categories=("resolved", "none"),
        )
        super().__init__(config, model, **options)

    def read(self, reply: FrustrationReply, question: Question) -> Verdict:
        """Return the label that follows from the signs."""
        signs = [question.finding("sign of frustration", sign.what, "", "fail", sign.evidence) for sign in reply.signs]
        verdict = Verdict(None, reply.reasoning, reply.confidence, signs, turns=question.piece.judged)
        return _labelled(verdict, reply.settled)

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the label that follows from the signs of all pieces; the last piece says how the user ends."""
        return _labelled(merged(None, verdicts), verdicts[-1].extra["settled"])


def _labelled(verdict: Verdict, settled: bool) -> Verdict:
    label = "none" if not verdict.findings else "resolved" if settled else "unresolved"
    state: FindingState = "partial" if settled else "fail"
    signs = [sign.model_copy(update={"verdict": label, "state": state}) for sign in verdict.findings]
    quotes = [quote for sign in signs for quote in sign.evidence]
    turns = sorted({quote.turn for quote in quotes if quote.verified and quote.turn is not None})
    return replace(verdict, score=label, findings=signs, extra={"turns": turns, "settled": settled})
