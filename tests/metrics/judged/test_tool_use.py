from __future__ import annotations

from typing import Any

import pytest

from conversations import REFUND, by, says, user
from vivavoce.errors import UsageError
from vivavoce.metrics.judged.tool_use import ToolUseMetric
from vivavoce.metrics.transcript import Shown
from vivavoce.testing import ScriptedModel

TOOLS = [{"type": "function", "function": {"name": "balance", "parameters": {"type": "object"}}}]


def call(name: str, id_: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "name": name, "arguments": {"of": 1}}]}


CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "What is my balance?"},
    call("balance", "a"),
    {"role": "tool", "tool_call_id": "a", "content": "120.50"},
    {"role": "assistant", "content": "You have 999 euros."},
    {"role": "user", "content": "Block my card."},
    call("block", "b"),
    {"role": "tool", "tool_call_id": "b", "content": "done"},
    {"role": "assistant", "content": "Your card is blocked."},
]


def judged(reference: str, *evidence: str, **wrong: bool) -> dict[str, Any]:
    right = {"needed": True, "right_tool": True, "right_arguments": True, "truthful": True}
    return {"call": reference, "evidence": list(evidence), **right, **wrong}


def reply(*calls: dict[str, Any], missing: tuple[str, ...] = ()) -> dict[str, Any]:
    never = [{"what": "look it up", "evidence": [quote]} for quote in missing]
    return {"calls": list(calls), "missing": never, "reasoning": "Looked up.", "confidence": 0.9}


def test_right_calls_pass() -> None:
    result = ToolUseMetric(ScriptedModel([reply(judged("c0"), judged("c1"))])).evaluate(CONVERSATION)
    assert (result.name, result.score, result.passed, result.evidence) == ("tool_use", 1.0, True, ())


def test_a_flaw_and_a_missing_call_cost_one_call_each() -> None:
    lied = judged("c0", "You have 999 euros", truthful=False)
    result = ToolUseMetric(ScriptedModel([reply(lied, judged("c1"), missing=("Block my card",))])).evaluate(
        CONVERSATION
    )
    assert (result.score, result.passed) == (pytest.approx(1 / 3), False)
    assert result.details["shares"] == {"needed": 1, "right_tool": 1, "right_arguments": 1, "truthful": 0.5}
    seen = [(one.kind, one.turn, one.verified) for one in result.evidence]
    assert seen == [("call", 0, True), ("quote", 0, True), ("quote", 1, True)]


def test_the_judge_sees_calls_results_and_the_tools_there_are() -> None:
    model = ScriptedModel([reply(judged("c0"), judged("c1"))])
    ToolUseMetric(model, tools=TOOLS).evaluate(CONVERSATION)
    asked = model.requests[0].messages[1].text
    assert 'call c0 balance {"of": 1}\nresult c0: "120.50"' in asked
    assert "these calls once: c0, c1." in asked
    assert '"name": "balance", "parameters"' in asked


NO_EVIDENCE: dict[str, Any] = {"what": "that", "evidence": []}


@pytest.mark.parametrize(
    "wrong",
    [
        reply(judged("c0")),
        reply(judged("c0"), judged("c0")),
        reply(judged("c0"), judged("c1"), judged("c2")),
        reply(judged("c0"), {**judged("c1"), "needed": "partly"}),
        {**reply(judged("c0"), judged("c1")), "missing": [NO_EVIDENCE]},
        {"calls": [judged("c0"), judged("c1")]},
    ],
    ids=["one left out", "one twice", "one never made", "no bool", "missing without evidence", "incomplete"],
)
def test_a_verdict_out_of_shape_is_an_error(wrong: dict[str, Any]) -> None:
    assert ToolUseMetric(ScriptedModel([wrong])).evaluate(CONVERSATION).state == "error"


def test_without_a_call_only_known_tools_can_be_missing() -> None:
    words = [CONVERSATION[0], CONVERSATION[3]]
    model = ScriptedModel([reply(), reply(missing=("What is my balance?",))])
    assert ToolUseMetric(model).evaluate(words).state == "skipped"
    assert model.requests == []
    knowing = ToolUseMetric(model, tools=TOOLS)
    result = knowing.evaluate(words)
    assert (result.state, result.reasoning) == ("skipped", "no tool was called, and none was needed")
    assert knowing.evaluate(words).score == 0.0


def test_calls_that_are_left_out_cannot_be_judged() -> None:
    result = ToolUseMetric(ScriptedModel([]), shown=Shown(tools=False)).evaluate(CONVERSATION)
    assert result.state == "skipped"


def test_each_piece_is_asked_about_its_own_calls() -> None:
    model = ScriptedModel([reply(judged("c0")), reply(judged("c1", needed=False))])
    result = ToolUseMetric(model, scope="turn").evaluate(CONVERSATION)
    assert (result.score, [(finding.what, finding.state) for finding in result.findings]) == (
        0.5,
        [("c0", "pass"), ("c1: not needed", "fail")],
    )
    assert "these calls once: c1." in model.requests[1].messages[1].text


def test_calls_of_several_agents_are_judged_by_the_tools_that_each_has() -> None:
    four = [judged(f"c{number}") for number in range(4)]
    model = ScriptedModel([reply(*four)])
    ToolUseMetric(model).evaluate(REFUND)
    asked = model.requests[0].messages[1].text
    assert "Several agents act as the assistant, and are judged together: triage, refunds." in asked
    assert 'Tools of triage: ["find_order"]\nTools of refunds: ["refund_order"]\nJudge a call by the tools' in asked


def test_tools_can_be_given_by_agent() -> None:
    four = [judged(f"c{number}") for number in range(4)]
    model = ScriptedModel([reply(*four)])
    ToolUseMetric(model, tools={"triage": ["find_order"], "refunds": TOOLS}).evaluate(REFUND)
    asked = model.requests[0].messages[1].text
    assert 'Tools: {"triage": ["find_order"], "refunds": [{"type"' in asked
    assert "Tools of triage" not in asked
    with pytest.raises(UsageError, match=r"tool_use: tools\.a: must be a list"):
        ToolUseMetric(model, tools={"a": "find_order"})


def test_a_call_that_several_agents_never_made_may_be_missing() -> None:
    rows = [user("Refund A1."), by("triage", says("Wait."), agent_tools=["find_order"]), by("refunds", says("Done."))]
    result = ToolUseMetric(ScriptedModel([reply(missing=("Refund A1.",))])).evaluate(rows)
    assert (result.state, result.score) == ("scored", 0.0)


def test_one_agent_is_asked_about_as_before() -> None:
    model = ScriptedModel([reply(judged("c0"), judged("c1"))])
    named = [
        {**row, "name": "bot", "agent_tools": ["x"]} if row["role"] == "assistant" else row for row in CONVERSATION
    ]
    ToolUseMetric(model).evaluate(named)
    asked = model.requests[0].messages[1].text
    assert "agents" not in asked
    assert "Tools of" not in asked
