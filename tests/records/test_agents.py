from __future__ import annotations

from typing import Any

import pytest

from conversations import REFUND, by, calls, result, says, user
from vivavoce.messages import ToolCall, read_messages
from vivavoce.records.agents import Agents, key_of, receiver_named, several
from vivavoce.records.score import Evidence, Finding


def agents_in(*rows: dict[str, Any], names: tuple[str, ...] = ()) -> Agents:
    return Agents(read_messages(rows), names)


def list_handoffs(agents: Agents) -> list[tuple[int, str | None, str, str]]:
    return [(handoff.message, handoff.sender, handoff.receiver, handoff.how) for handoff in agents.handoffs()]


def test_a_call_and_its_result_belong_to_the_agent_of_the_message() -> None:
    agents = agents_in(*REFUND)
    t, r = "triage", "refunds"
    assert agents.acting == [None, t, t, r, r, t, t, t, None, r, r, r]
    assert agents.by_call == {"c0": t, "c1": r, "c2": t, "c3": r}
    assert agents.last_in(0) == t
    assert agents.last_in(1) == r
    assert agents.last_in(7) is None


def test_two_spellings_are_one_agent_called_as_it_is_first() -> None:
    agents = agents_in(user("hi"), by("Refund Agent", says("a")), by("refund_agent", says("b")), by("Zoë", says("c")))
    assert agents.names == ["Refund Agent", "Zoë"]
    assert key_of("Ｒefund") == key_of("refund")
    assert key_of("***") == "***"
    assert several(read_messages([by("A b", says("x")), by("a-B", says("y"))])) is False
    assert several(read_messages(REFUND)) is True


def test_handoffs_are_told_by_calls_by_the_log_and_by_who_goes_on() -> None:
    t, r = "triage", "refunds"
    assert list_handoffs(agents_in(*REFUND)) == [(1, t, r, "call"), (3, r, t, "call"), (7, t, r, "stated")]
    talk = agents_in(user("hi"), by("writer", says("a")), by("critic", says("b")), by("writer", says("c")))
    assert list_handoffs(talk) == [(2, "writer", "critic", "unstated"), (3, "critic", "writer", "unstated")]


def test_a_handoff_that_is_stated_and_called_is_one() -> None:
    call = by("triage", calls(("1", "transfer_to_refunds", {})), handoff_to="Refunds Team")
    assert list_handoffs(agents_in(user("hi"), call, result("1"))) == [(1, "triage", "Refunds Team", "call")]


def test_a_handoff_in_a_later_turn_is_another_one() -> None:
    over = by("a", says("A person will answer."), handoff_to="human")
    agents = agents_in(user("hi"), over, user("?"), over, by("a", says("Wait.")), user("!"), by("b", says("x")))
    assert list_handoffs(agents) == [
        (1, "a", "human", "stated"),
        (3, "a", "human", "stated"),
        (6, "a", "b", "unstated"),
    ]
    fourth_agents = agents_in(user("hi"), by("a", says("x"), handoff_to="b"), user("?"), by("b", says("y")))
    assert list_handoffs(fourth_agents) == [(1, "a", "b", "stated")]


def test_a_message_that_is_there_twice_counts_twice() -> None:
    message = read_messages([by("a", calls(("1", "f", {})))])[0]
    assert Agents([message, message]).by_call == {"c0": "a", "c1": "a"}


def test_a_tool_that_is_only_called_like_a_handoff_is_none() -> None:
    call = by("bank", calls(("1", "transfer_to_savings", {"amount": 3})))
    assert list_handoffs(agents_in(user("hi"), call, result("1"))) == []
    assert list_handoffs(agents_in(user("hi"), call, result("1"), names=("Savings",))) == [
        (1, "bank", "Savings", "call")
    ]


def test_a_handoff_that_failed_is_none() -> None:
    failed = {**result("1", "no such agent"), "metadata": {"is_error": True}}
    call = by("triage", calls(("1", "transfer_to_refunds", {})))
    assert list_handoffs(agents_in(user("hi"), call, failed, by("triage", says("Sorry.")), names=("refunds",))) == []


@pytest.mark.parametrize(
    ("name", "arguments", "receiver"),
    [
        ("transfer_to_refunds", {}, "refunds"),
        ("transfer_back_to_supervisor", {}, "supervisor"),
        ("Handoff-transfer_to_billing", {}, "billing"),
        ("transfer_to_agent", {"agent_name": "billing"}, "billing"),
        ("handoff", {"to_agent": "Billing", "reason": "x"}, "Billing"),
        ("transfer_to_agent", {"agent_name": 3}, None),
        ("transfer_to_agent", "not JSON", None),
        ("refund_order", {}, None),
        ("not_a_transfer_to", {}, None),
    ],
)
def test_whom_a_call_names(name: str, arguments: Any, receiver: str | None) -> None:
    call = read_messages([calls(("1", name, arguments))])[0]
    tool_calls: list[ToolCall] = getattr(call, "tool_calls")  # noqa: B009
    assert receiver_named(tool_calls[0]) == receiver


def test_tools_are_all_that_any_message_of_an_agent_tells() -> None:
    rows = [by("a", says("x"), agent_tools=["f"]), by("A", says("y"), agent_tools=["g"]), by("b", says("z"))]
    assert agents_in(user("hi"), *rows).tools() == {"a": frozenset(("f", "g"))}


def test_a_finding_is_about_the_agent_of_its_message_its_evidence_or_its_turn() -> None:
    agents = agents_in(*REFUND)

    def of(**fields: Any) -> str | None:
        return agents.of_finding(Finding(kind="k", what="w", verdict="v", state="fail", **fields))

    assert of(data={"message": 3}) == "refunds"
    assert of(turn=0) == "triage"
    assert of(evidence=(Evidence(text="c1", kind="call", turn=0, verified=True),)) == "refunds"
    assert of(turn=0, evidence=(Evidence(text="Refunded.", turn=1, verified=True),)) == "refunds"
    assert of(evidence=(Evidence(text="Refunded.", turn=1),)) is None
    assert of() is None
    assert of(data={"message": 0}) is None
    assert of(data={"agent": "Refunds", "message": 1}) == "refunds"


def test_a_finding_of_a_turn_that_was_judged_alone_counts_from_there() -> None:
    agents = agents_in(*REFUND)
    quote = Evidence(text="Refunded.", turn=0, verified=True)
    alone = Finding(kind="k", what="w", verdict="v", state="fail", turn=0, evidence=(quote,), data={"message": 1})
    assert agents.of_finding(alone, 1) == "refunds"
    call = Evidence(text="c0", kind="call", turn=0, verified=True)
    assert agents.of_finding(Finding(kind="k", what="w", verdict="v", state="fail", evidence=(call,)), 1) == "refunds"
    assert agents.in_turn(0) == ["triage", "refunds"]


def test_two_hundred_agents_are_two_hundred() -> None:
    rows = [by(f"agent {number}", says("x")) for number in range(200)]
    agents = agents_in(user("hi"), *rows)
    assert len(agents.names) == 200
    assert len(agents.handoffs()) == 199


def test_a_reader_is_told_of_a_handoff_after_the_results_of_its_calls() -> None:
    agents = agents_in(*REFUND)
    places = [at for at, message in enumerate(agents.messages) if agents.handoff_after(message)]
    assert places == [2, 4, 7]
    talk = agents_in(user("hi"), by("a", says("x")), user("?"), by("b", says("y")))
    assert [at for at, message in enumerate(talk.messages) if talk.handoff_after(message)] == [2]
