from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.judged.faithfulness import FaithfulnessMetric
from vivavoce.metrics.transcript import Shown
from vivavoce.testing import ScriptedModel

CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "What does the giro cost?"},
    {"role": "assistant", "content": "It costs 5 euros.", "retrieval_context": ["The giro costs 5 euros a month."]},
    {"role": "user", "content": "Thanks. Nice weather today."},
    {"role": "assistant", "content": "It is sunny in Rome."},
    {"role": "user", "content": "What is my balance?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "name": "balance", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "t", "content": "120.50"},
    {"role": "assistant", "content": "You have 999 euros, in a gold account."},
]


def claim(turn: int, support: str, *evidence: str) -> dict[str, Any]:
    return {"turn": turn, "claim": "so it is", "evidence": list(evidence), "support": support}


def reply(*claims: dict[str, Any]) -> dict[str, Any]:
    return {"claims": list(claims), "reasoning": "Looked up.", "confidence": 0.9}


SUPPORTED = claim(1, "supported", "costs 5 euros a month")


def test_each_turn_counts_once_however_much_is_claimed_in_it() -> None:
    mixed = [claim(3, "contradicted", "120.50"), claim(3, "unsupported"), claim(3, "partly", "c0")]
    result = FaithfulnessMetric(ScriptedModel([reply(SUPPORTED, *mixed)])).evaluate(CONVERSATION)
    assert result.score == pytest.approx((1 + 0.5 / 3) / 2)
    assert result.passed is False
    assert [turn["turn"] for turn in result.extra["by_turn"]] == [0, 2]
    assert [finding.state for finding in result.findings] == ["pass", "fail", "fail", "partial"]
    assert [(one.turn, one.verified) for one in result.evidence] == [(0, True), (2, True), (2, True)]


def test_a_turn_that_the_judge_counts_from_1_is_kept_from_0() -> None:
    result = FaithfulnessMetric(ScriptedModel([reply(SUPPORTED)])).evaluate(CONVERSATION)
    assert [finding.turn for finding in result.findings] == [0]
    assert result.evidence[0].turn == 0


def test_what_is_all_supported_passes() -> None:
    result = FaithfulnessMetric(ScriptedModel([reply(SUPPORTED)])).evaluate(CONVERSATION)
    assert (result.name, result.score, result.passed) == ("faithfulness", 1.0, True)


def test_the_judge_is_told_which_turns_have_findings() -> None:
    model = ScriptedModel([reply(SUPPORTED)])
    FaithfulnessMetric(model).evaluate(CONVERSATION)
    asked = model.requests[0].messages[1].text
    assert "findings of their own: [1, 3]" in asked
    assert 'retrieved: "The giro costs 5 euros a month."' in asked


def test_no_claims_are_not_perfect_but_skipped() -> None:
    result = FaithfulnessMetric(ScriptedModel([reply()])).evaluate(CONVERSATION)
    assert (result.state, result.score, result.passed) == ("skipped", None, None)


@pytest.mark.parametrize(
    ("shown", "conversation"),
    [
        (Shown(), CONVERSATION[2:4]),
        (Shown(tools=False), CONVERSATION[2:]),
        (Shown(retrieved=False), CONVERSATION[:4]),
    ],
    ids=["none found", "tools left out", "retrieved texts left out"],
)
def test_without_findings_in_view_nobody_is_asked(shown: Shown, conversation: list[dict[str, Any]]) -> None:
    model = ScriptedModel([])
    result = FaithfulnessMetric(model, shown=shown).evaluate(conversation)
    assert (result.state, model.requests) == ("skipped", [])


@pytest.mark.parametrize(
    "wrong",
    [
        reply(claim(2, "unsupported")),
        reply(claim(8, "unsupported")),
        reply(claim(1, "supported")),
        reply(claim(1, "probably", "5 euros")),
        {**reply(SUPPORTED), "confidence": 7},
        {"claims": [SUPPORTED]},
    ],
    ids=["a turn without findings", "no such turn", "no evidence", "unknown word", "confidence", "incomplete"],
)
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    result = FaithfulnessMetric(ScriptedModel([wrong])).evaluate(CONVERSATION)
    assert (result.state, result.value) == ("error", None)


def test_pieces_are_joined_turn_by_turn_and_those_without_findings_cost_nothing() -> None:
    model = ScriptedModel([reply(SUPPORTED), reply(claim(3, "unsupported"))])
    result = FaithfulnessMetric(model, scope="turn").evaluate(CONVERSATION)
    assert (result.score, len(model.requests)) == (0.5, 2)
    assert [(finding.kind, finding.verdict, finding.turn) for finding in result.findings] == [
        ("claim", "supported", 0),
        ("claim", "unsupported", 2),
    ]
