"""Real agents of the OpenAI Agents SDK tell of handoffs and of the tools of each; their models are scripted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from vivavoce.messages import HumanMessage
from vivavoce.records.agents import Agents
from vivavoce.targets import FrameworkTarget
from vivavoce.targets.target import Opening


@pytest.fixture(autouse=True)
def _untraced() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@function_tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"refunded {order}"


async def acted(agent: Agent[Any]) -> Agents:
    session = await FrameworkTarget(agent).open(Opening("c", "s"))
    reply = await session.send([HumanMessage(content="Refund A1.")])
    await session.close()
    return Agents(reply.messages)


def refunding() -> ScriptedModel:
    return ScriptedModel([[function_call("refund", {"order": "A1"}, call_id="c1")], [assistant_message("Refunded.")]])


async def test_a_handoff_has_both_agents_and_their_tools() -> None:
    refunds = Agent(name="Refunds", model=refunding(), tools=[refund])
    handing = ScriptedModel([[function_call("transfer_to_refunds", {}, call_id="h1")]])
    agents = await acted(Agent(name="Triage", model=handing, handoffs=[refunds]))
    assert agents.acting == ["Triage", "Triage", "Refunds", "Refunds", "Refunds"]
    assert agents.tools() == {"Triage": frozenset(), "Refunds": frozenset(("refund",))}
    assert [(handoff.sender, handoff.receiver, handoff.how) for handoff in agents.handoffs()] == [
        ("Triage", "Refunds", "call")
    ]


async def test_an_agent_alone_is_recorded_as_it_was() -> None:
    agents = await acted(Agent(name="Refunds", model=refunding(), tools=[refund]))
    assert agents.tools() == {}
    assert all("agent_tools" not in message.to_dict() for message in agents.messages)
