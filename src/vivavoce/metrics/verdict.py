"""`Verdict`: what one answer of a judge means, and several answers together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vivavoce.records.score import Evidence, Finding


@dataclass(frozen=True, slots=True)
class Verdict:
    """The meaning of one answer of a judge; `turns` is how many turns it is about.

    The score is None where there was nothing to judge, and the reasoning says so. Where a conversation is judged in
    pieces, `turns` is what this one weighs: its turns, or as many things as the judge found in it. `evidence` is what
    it rests on besides its findings, and `extra` what only this metric knows.
    """

    score: float | str | bool | None
    reasoning: str
    confidence: float | None = None
    findings: Sequence[Finding] = ()
    evidence: Sequence[Evidence] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    turns: int = 1


def merged(
    score: float | str | None, verdicts: Sequence[Verdict], findings: Sequence[Finding] | None = None, **extra: object
) -> Verdict:
    """Return the verdict with that score whose reasons are those of all pieces, and its findings theirs."""
    sure = [verdict.confidence for verdict in verdicts if verdict.confidence is not None]
    return Verdict(
        score,
        "\n".join(verdict.reasoning for verdict in verdicts),
        min(sure) if sure else None,
        [finding for verdict in verdicts for finding in verdict.findings] if findings is None else findings,
        list(dict.fromkeys(quote for verdict in verdicts for quote in verdict.evidence)),
        extra,
        sum(verdict.turns for verdict in verdicts),
    )
