"""`ViolationMetric`: a judge lists what went wrong, how badly and where; the score follows from the worst of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, cast

from pydantic import Field

from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.question import Question, Shape, Verdict, merged
from vivavoce.records.score import Finding

Severity = Literal["minor", "major", "critical"]
HARM: Mapping[str, float] = {"minor": 0.25, "major": 0.75, "critical": 1.0}
"""How much of the score each severity takes."""


class Violation(Shape):
    """One thing that went wrong."""

    what: str
    evidence: list[str] = Field(min_length=1)
    severity: Severity


class ViolationsReply(Shape):
    """What the judge answers; no violations is an answer too."""

    violations: list[Violation]
    reasoning: str
    confidence: float = Field(ge=0, le=1)


class ViolationMetric(JudgedMetric):
    """A judged metric whose answer is a list of violations.

    The harm of a conversation is that of its worst violation: minor 0.25, major 0.75, critical 1. The score is the harm
    where lower is better, else 1 minus the harm.
    """

    reply = ViolationsReply
    of_assistant: ClassVar[bool] = True
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(
        {("violation", "fail"): "if_quoted"}, absence="a conversation is clean where nothing violates"
    )

    def read(self, reply: ViolationsReply, question: Question) -> Verdict:
        """Return the score that the worst violation leaves."""
        violations = [
            question.finding("violation", violation.what, violation.severity, "fail", violation.evidence)
            for violation in reply.violations
        ]
        score = self._score(max((HARM[violation.severity] for violation in reply.violations), default=0.0))
        return Verdict(score, reply.reasoning, reply.confidence, violations, turns=question.piece.judged)

    def passes(self, verdict: Verdict, findings: Sequence[Finding]) -> bool | None:
        """Return whether the score that the worst of the violations leaves passes."""
        if verdict.score is None:
            return False
        harms = [HARM[cast("Severity", finding.verdict)] for finding in findings if finding.state == "fail"]
        return self.config.passes(self._score(max(harms, default=0.0)))

    def merge(self, verdicts: Sequence[Verdict]) -> Verdict:
        """Return the verdict of the worst piece, with the violations of all of them."""
        scores = [float(verdict.score) for verdict in verdicts if verdict.score is not None]
        return merged(max(scores) if self.config.direction == "lower_is_better" else min(scores), verdicts)

    def _score(self, harm: float) -> float:
        return harm if self.config.direction == "lower_is_better" else 1.0 - harm
