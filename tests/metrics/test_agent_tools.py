from __future__ import annotations

from conversations import REFUND
from vivavoce.messages import read_messages
from vivavoce.metrics.agent_tools import name_of_tool, read_tools_by_agent, tools_of_agents
from vivavoce.records.agents import Agents


def test_a_tool_has_its_name_in_any_form() -> None:
    forms = ["look_up ", {"name": "look_up"}, {"type": "function", "function": {"name": "look_up"}}]
    assert [name_of_tool(form) for form in forms] == ["look_up"] * 3
    assert name_of_tool({"function": {"name": 3}}) == ""


def test_tools_that_are_given_replace_those_of_the_log_under_the_name_of_the_log() -> None:
    agents = Agents(read_messages(REFUND), ["REFUNDS", "billing"])
    tools = read_tools_by_agent({"REFUNDS": ["pay"], "billing": []}, "own_tools")
    assert tools_of_agents(tools, agents) == {
        "triage": frozenset(("find_order",)),
        "refunds": frozenset(("pay",)),
        "billing": frozenset(),
    }
