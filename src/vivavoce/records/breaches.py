"""Breaches: what the judge of a goal finds besides it, false statements and broken rules of the policy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

from vivavoce.records.score import BREACH, Finding, Score

BreachKind = Literal["false_statement", "broken_rule"]

BREACH_NAMES: Mapping[BreachKind, str] = {"false_statement": "false statement", "broken_rule": "broken rule"}
"""Each kind in words."""

UNKNOWN_KIND = "broken"
"""The verdict of a breach whose kind the judge does not give. It may be either, so it counts as both."""


def verified_breaches(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the breaches among findings that evidence in the conversation shows."""
    for finding in findings:
        if finding.kind == BREACH and any(evidence.verified for evidence in finding.evidence):
            yield finding


def breach_name(finding: Finding) -> str:
    """Return what a breach is, in words."""
    return " or ".join(BREACH_NAMES[kind] for kind in _kinds(finding))


def breaches_of(score: Score) -> tuple[BreachKind, ...]:
    """Return the kind of each verified breach that a score rests on."""
    if score.state != "scored":
        return ()
    return tuple(kind for finding in verified_breaches(score.findings) for kind in _kinds(finding))


def stored_breaches(findings: str | None) -> tuple[BreachKind, ...]:
    """Return the same from the stored findings of a score, a JSON list."""
    if not findings or BREACH not in findings:
        return ()
    listed: list[dict[str, Any]] = json.loads(findings)
    breaches = [Finding.model_validate(finding) for finding in listed if finding.get("kind") == BREACH]
    return tuple(kind for finding in verified_breaches(breaches) for kind in _kinds(finding))


def _kinds(finding: Finding) -> list[BreachKind]:
    kinds: list[BreachKind] = [kind for kind in get_args(BreachKind) if kind == finding.verdict]
    return kinds or list(get_args(BreachKind))
