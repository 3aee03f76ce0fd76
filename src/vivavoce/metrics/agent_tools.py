"""The tools of an assistant, or of each of its agents, as people write them: names, or JSON schemas in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.records.agents import Agents, key_of

Tool = str | Mapping[str, Any]
ToolsByAgent = Mapping[str, Sequence[Tool]]


def read_tools_by_agent(written: object, metric: str) -> dict[str, list[Tool]]:
    """Return the tools of each agent.

    Raises:
        UsageError: they are not lists of tools by the names of agents, or one name stands there in two spellings.
    """
    if not isinstance(written, Mapping):
        raise UsageError(f"{metric}: tools is a list for each agent, {{refunds: [refund_order]}}; got {written!r:.80}")
    found: dict[str, list[Tool]] = {}
    spelled: dict[str, str] = {}
    for agent, tools in cast("Mapping[object, object]", written).items():
        place = f"{metric}: tools.{agent}"
        if not isinstance(agent, str) or not agent.strip():
            raise UsageError(f"{place}: an agent name must be a non-empty string")
        if (other := spelled.setdefault(key_of(agent), agent)) != agent:
            raise UsageError(f"{place}: '{other}' and '{agent}' are spellings of one agent; give its tools once")
        if not isinstance(tools, list | tuple):
            raise UsageError(f"{place}: must be a list of tools, empty for none; got {tools!r:.80}")
        found[agent] = [_tool(tool, place) for tool in cast("Sequence[object]", tools)]
    return found


def _tool(tool: object, place: str) -> Tool:
    if isinstance(tool, Mapping):
        tool = dict(cast("Mapping[str, Any]", tool))
    if not isinstance(tool, str | dict) or not name_of_tool(cast("Tool", tool)):
        raise UsageError(f"{place}: a tool must be a name, or a JSON schema with a name; got {tool!r:.80}")
    return cast("Tool", tool)


def name_of_tool(tool: Tool) -> str:
    """Return the name of a tool, empty where its schema has none."""
    if isinstance(tool, str):
        return tool.strip()
    function = tool.get("function")
    inner = cast("Mapping[str, Any]", function) if isinstance(function, Mapping) else tool
    return name if isinstance(name := inner.get("name"), str) else ""


def tools_of_agents(given: ToolsByAgent, agents: Agents) -> dict[str, frozenset[str]]:
    """Return the names of the tools of each agent of a conversation: those that are given, else those of the log."""
    found = agents.tools()
    for name, tools in given.items():
        found[agents.find_agent(name) or name] = frozenset(map(name_of_tool, tools))
    return found
