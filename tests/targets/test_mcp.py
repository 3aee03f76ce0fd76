"""A tool of an MCP server as a bot."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from asking import asked, told
from vivavoce.errors import SuiteFault, TargetFault
from vivavoce.targets import McpTarget


class Server:
    """A server whose tool `talk` repeats what it gets; `broken` says at which method it fails."""

    def __init__(self, required: Sequence[str] = ("text",), broken: str = "", said: str | None = None) -> None:
        self.broken, self.said = broken, said
        self.closed = 0
        self.given: list[Mapping[str, Any]] = []
        schema: dict[str, Any] = {
            "type": "object",
            "required": list(required),
            "properties": {key: {} for key in required},
        }
        self.definitions = [{"type": "function", "function": {"name": "talk", "parameters": schema}}]

    async def open(self) -> Server:
        if self.broken == "open":
            raise SuiteFault("the MCP server x cannot be reached: gone", kind="connection", evidence="printed")
        return self

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        if self.broken == "call":
            raise SuiteFault("the MCP server x did not answer talk: late", kind="timeout")
        self.given.append(arguments)
        return (self.said if self.said is not None else f"{name}: {arguments}"), self.broken == "tool"

    async def close(self) -> None:
        self.closed += 1


async def test_the_only_argument_gets_the_message() -> None:
    server = Server()
    first, _ = await asked(McpTarget("bot", server, "talk"), "a", "b")
    assert told(first) == [("assistant", None, "talk: {'text': 'a'}", [])]
    assert server.given == [{"text": "a"}, {"text": "b"}]
    assert server.closed == 1


async def test_arguments_are_templates() -> None:
    server = Server(("text", "thread"))
    arguments = {"text": "{{ message }}", "thread": "{{ conversation_id }}", "all": "{{ messages }}"}
    await asked(McpTarget("bot", server, "talk", arguments=arguments), "a")
    assert server.given == [{"text": "a", "thread": "c-1", "all": [{"role": "user", "content": "a"}]}]


@pytest.mark.parametrize(
    ("server", "tool", "fault", "rule"),
    [
        (Server(), "say", SuiteFault, "bot: the server has no tool 'say'; it has talk"),
        (Server(("a", "b")), "talk", SuiteFault, "in one; 'talk' takes a, b"),
        (Server(broken="open"), "talk", TargetFault, "the MCP server x cannot be reached: gone"),
        (Server(broken="call"), "talk", TargetFault, "the MCP server x did not answer talk: late"),
        (Server(broken="tool", said="no"), "talk", TargetFault, "the tool 'talk' of bot failed: no"),
        (Server(said=""), "talk", TargetFault, "the tool 'talk' of bot returned no text"),
    ],
)
async def test_whose_fault_it_is(server: Server, tool: str, fault: type[Exception], rule: str) -> None:
    with pytest.raises(fault, match=rule):
        await asked(McpTarget("bot", server, tool), "a")


async def test_a_server_of_the_official_package() -> None:
    pytest.importorskip("mcp", reason="needs the extra [mcp]")
    from vivavoce.tools.mcp import McpServer

    folder = Path(__file__).parents[1] / "tools"
    server = McpServer([sys.executable, "mcp_server.py"], folder, timeout=30)
    first, second = await asked(McpTarget("bot", server, "look_up"), "a", "b")
    assert "a is sent (1" in first.messages[0].text
    assert "b is sent (2" in second.messages[0].text
