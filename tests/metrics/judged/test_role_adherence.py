from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.role_adherence import RoleAdherenceMetric
from vivavoce.metrics.transcript import Shown
from vivavoce.testing import ScriptedModel

CONVERSATION = [
    {"role": "user", "content": "Who are you?"},
    {"role": "assistant", "content": "A humble librarian."},
    {"role": "user", "content": "Sell me a car."},
    {"role": "assistant", "content": "Sure, that makes 9,000 euros."},
]
SYSTEM = {"role": "system", "content": "You are a librarian."}


def verdict(answers: dict[str, str], *evidence: str) -> dict[str, Any]:
    checks = [{"item": item, "evidence": list(evidence), "answer": answer} for item, answer in answers.items()]
    return {"checks": checks, "reasoning": "So it is.", "confidence": 0.8}


KEPT = verdict({"turn 1": "yes", "turn 2": "yes"})


@pytest.mark.parametrize(("last", "score", "passed"), [("yes", 1.0, True), ("no", 0.5, False)])
def test_the_score_is_the_share_of_the_turns_in_character(last: str, score: float, passed: bool) -> None:
    judge = ScriptedModel([verdict({"turn 1": "yes", "turn 2": last}, "that makes 9,000 euros", "I am a priest")])
    result = RoleAdherenceMetric(model=judge, role="a librarian").evaluate(CONVERSATION)
    assert (result.score, result.passed) == (score, passed)
    assert [(one.turn, one.verified) for one in result.evidence] == [(1, True), (None, False)]


def test_the_role_comes_from_the_option_the_context_or_the_system_message() -> None:
    judge = ScriptedModel([KEPT, KEPT, KEPT])
    RoleAdherenceMetric(model=judge, role="a\npirate").evaluate(CONVERSATION, context={"role": "a librarian"})
    RoleAdherenceMetric(model=judge).evaluate(CONVERSATION, context={"role": "a librarian"})
    RoleAdherenceMetric(model=judge).evaluate([SYSTEM, *CONVERSATION])
    first, second, third = (request.messages[-1].text for request in judge.requests)
    assert 'Its role: "a\\npirate"\n' in first
    assert 'Its role: "a librarian"\n' in second
    assert third.startswith('system: "You are a librarian."\n')
    assert "Its role is what the system messages set out.\n" in third


def test_without_a_role_there_is_nothing_to_keep_to() -> None:
    judge = ScriptedModel([])
    result = RoleAdherenceMetric(model=judge).evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == (
        "skipped",
        "needs a role: role=, context['role'], or a system message",
    )
    assert RoleAdherenceMetric(model=judge, shown=Shown(policy=False)).evaluate([SYSTEM, *CONVERSATION]).score is None


def test_another_role_is_another_fingerprint() -> None:
    assert RoleAdherenceMetric(role="a cook").fingerprint != RoleAdherenceMetric(role="a priest").fingerprint


def test_a_turn_left_out_is_an_error() -> None:
    judge = ScriptedModel([verdict({"turn 1": "yes"})])
    assert RoleAdherenceMetric(model=judge, role="a librarian").evaluate(CONVERSATION).state == "error"
