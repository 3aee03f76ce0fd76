from __future__ import annotations

from typing import Any

import pytest

from conversations import REFUND, Row, by, calls, result, says, user
from vivavoce.errors import UsageError
from vivavoce.metrics.exact.agents import HandoffsMetric, LastAgentMetric, OwnToolsMetric


def verdicts(metric: HandoffsMetric | OwnToolsMetric, rows: list[Row]) -> list[tuple[str, int | None]]:
    return [(finding.verdict, finding.turn) for finding in metric.evaluate(rows).findings]


def handed(to: str, **arguments: Any) -> Row:
    return calls(("h", f"transfer_to_{to}", arguments))


def test_a_handoff_that_comes_back_without_work_is_needless() -> None:
    result_ = HandoffsMetric().evaluate(REFUND)
    assert result_.value == pytest.approx(2 / 3)
    assert result_.passed is False
    assert [(finding.verdict, finding.turn, finding.data["message"]) for finding in result_.findings] == [
        ("needless", 0, 1)
    ]
    assert "turn 1: triage hands over to refunds, which hands back without doing anything" in (result_.reason or "")
    assert [one["how"] for one in result_.extra["handoffs"]] == ["call", "call", "stated"]


def test_a_receiver_that_speaks_or_works_was_needed() -> None:
    back = by("refunds", {**handed("triage"), "content": "Which order?"})
    assert (
        verdicts(HandoffsMetric(), [user("hi"), by("triage", handed("refunds")), back, by("triage", says("?"))]) == []
    )
    work = by("refunds", calls(("1", "find", {}), ("2", "transfer_to_triage", {})))
    assert (
        verdicts(HandoffsMetric(), [user("hi"), by("triage", handed("refunds")), work, by("triage", says("?"))]) == []
    )


def test_a_handoff_to_itself_to_nobody_and_to_another_than_takes_over() -> None:
    itself = [user("hi"), by("a", handed("A")), by("b", says("x"))]
    assert verdicts(HandoffsMetric(), itself) == [("to itself", 0)]
    nobody = [user("hi"), by("a", says("x"), handoff_to="billing")]
    assert verdicts(HandoffsMetric(agents=["a", "b"]), nobody) == [("nobody", 0)]
    assert verdicts(HandoffsMetric(agents=["a", "Billing Agent"]), nobody) == []
    assert verdicts(HandoffsMetric(), nobody) == []
    other = [user("hi"), by("a", handed("b")), by("c", says("x")), user("and?"), by("b", says("y"))]
    assert verdicts(HandoffsMetric(), other) == [("another took over", 0)]


def test_what_a_handoff_has_to_carry_is_looked_for_in_the_call_alone() -> None:
    found = verdicts(HandoffsMetric(carry=["order_id"]), REFUND)
    assert found == [("needless", 0), ("without context", 0)]
    empty = [user("hi"), by("a", handed("b", order_id=" ")), by("b", says("x"))]
    assert verdicts(HandoffsMetric(carry=["order_id"]), empty) == [("without context", 0)]


def test_a_group_chat_has_no_handoffs_to_judge() -> None:
    talk = [user("hi"), by("writer", says("a")), by("critic", says("b"))]
    assert HandoffsMetric().evaluate(talk).state == "skipped"
    assert HandoffsMetric().evaluate([user("hi"), says("a")]).reason == "the messages name no agents"


def test_each_turn_has_its_own_handoffs() -> None:
    turns = HandoffsMetric(scope="turn").evaluate(REFUND).turns
    assert turns is not None
    assert [(turn.state, turn.value) for turn in turns] == [("scored", pytest.approx(2 / 3)), ("skipped", None)]


def test_a_call_of_a_tool_that_only_another_agent_has_is_found() -> None:
    found = OwnToolsMetric().evaluate(REFUND)
    assert found.value == 0.5
    (finding,) = found.findings
    assert finding.what == "triage calls refund_order, a tool of refunds"
    assert finding.data == {"message": 5, "agent": "triage"}
    assert (finding.evidence[0].kind, finding.evidence[0].text) == ("call", "c2")


def test_tools_that_are_given_go_before_those_of_the_log() -> None:
    schema = {"type": "function", "function": {"name": "refund_order"}}
    assert OwnToolsMetric(tools={"Triage": [schema], "refunds": ["refund_order"]}).evaluate(REFUND).passed is True
    nobody: dict[str, list[str]] = {"triage": [], "refunds": []}
    assert "which no agent has" in str(OwnToolsMetric(tools=nobody).evaluate(REFUND[:7]).reason)


def test_calls_of_agents_whose_tools_nobody_knows_do_not_count() -> None:
    rows = [user("hi"), by("a", calls(("1", "f", {}))), result("1"), by("b", says("x"))]
    assert OwnToolsMetric().evaluate(rows).reason == "nobody says which tools the agents have"
    assert OwnToolsMetric(tools={"b": []}).evaluate(rows).reason == "no agent whose tools are known calls one"


@pytest.mark.parametrize(
    ("tools", "rule"),
    [
        (["refund"], "is a list for each agent"),
        ({"a": "refund"}, "tools.a: must be a list of tools"),
        ({"a": [3]}, "a tool must be a name"),
        ({"a": [{"parameters": "x"}]}, "a tool must be a name"),
        ({"Refund Agent": [], "refund_agent": []}, "are spellings of one agent"),
        ({" ": []}, "an agent name must be"),
    ],
)
def test_tools_that_are_no_lists_by_agent_are_refused(tools: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        OwnToolsMetric(tools=tools)


def test_who_has_a_conversation_at_the_end() -> None:
    def ends(*rows: Row, expected: str = "human") -> bool | None:
        return LastAgentMetric(expected=expected).evaluate([user("hi"), *rows]).passed

    assert LastAgentMetric(expected=["refunds"]).evaluate(REFUND).passed is True
    assert LastAgentMetric(expected="triage").evaluate(REFUND).passed is False
    assert ends(by("triage", handed("human")), result("h"), by("triage", says("A person will answer."))) is True
    assert ends(by("triage", says("x"), handoff_to="human"), user("ok"), by("triage", says("Still me."))) is False
    assert ends(says("x")) is None


def test_options_that_name_nobody_are_refused() -> None:
    with pytest.raises(UsageError, match="set expected to an agent name"):
        LastAgentMetric(expected=[])
    with pytest.raises(UsageError, match="list of names"):
        HandoffsMetric(agents=[3])  # type: ignore[list-item]
