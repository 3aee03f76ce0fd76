"""An MCP server, in a process of its own and over HTTP."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra [mcp]")

from vivavoce.errors import SuiteFault, UsageError
from vivavoce.messages import ToolCall, ToolMessage
from vivavoce.targets.target import Opening, World
from vivavoce.tools.mcp import McpServer
from vivavoce.tools.toolbox import Toolbox
from vivavoce.wire.own_traffic import of_run

HERE = Path(__file__).parent
COMMAND = [sys.executable, "mcp_server.py"]


def start_server(*more: str, timeout: float = 30, env: tuple[str, ...] = ()) -> McpServer:
    return McpServer([*COMMAND, *more], HERE, env, timeout=timeout)


async def answers(toolbox: Toolbox, *orders: str) -> list[ToolMessage]:
    session = await toolbox.open(Opening("c", "s"))
    try:
        calls = [ToolCall(id=order, name="look_up", args={"order": order}) for order in orders]
        return [await session.answer(call, [], World()) for call in calls]
    finally:
        await session.close()


async def test_the_tools_of_a_server_are_offered_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPOT", "Ulm")
    toolbox = Toolbox(server=start_server(env=("DEPOT",)))
    session = await toolbox.open(Opening("c", "s"))
    await session.close()
    definition = session.offered[-1]
    assert definition["function"]["name"] == "look_up"
    assert definition["function"]["description"] == "Find an order."
    assert definition["function"]["parameters"]["required"] == ["order"]
    first, second, third = await answers(toolbox, "a", "gone", "b")
    assert first.content == "a is sent (1, Ulm)"
    assert (first.metadata or {})["answered_by"] == "mcp"
    assert (first.metadata or {})["mocked"] is False
    assert second.text.startswith("Error: ")
    assert "no such order" in second.text
    assert second.outcome == "failed"
    assert third.content == "b is sent (3, Ulm)"


async def test_calls_of_a_run_are_marked_as_those_of_a_test() -> None:
    session = await start_server().open()
    try:
        before = await session.call("baggage", {})
        with of_run("nightly-1"):
            marked = await session.call("baggage", {})
    finally:
        await session.close()
    assert (before, marked) == (("None", False), ("vivavoce.run=nightly-1", False))


async def test_each_conversation_has_a_server_of_its_own() -> None:
    toolbox = Toolbox(server=start_server())
    replies = await asyncio.gather(answers(toolbox, "a", "b"), answers(toolbox, "c"))
    assert [[message.content for message in each] for each in replies] == [
        ["a is sent (1, nowhere)", "b is sent (2, nowhere)"],
        ["c is sent (1, nowhere)"],
    ]


async def test_a_handler_and_a_row_come_before_the_server() -> None:
    toolbox = Toolbox(handlers={"look_up": {"result": "canned"}}, server=start_server())
    [message] = await answers(toolbox, "a")
    assert message.content == "canned"
    with pytest.raises(SuiteFault, match=r"tool_results.lookup: no such tool is offered; did you"):
        await Toolbox(server=start_server()).open(Opening("c", "s", tool_results={"lookup": {"result": 1}}))


async def test_a_server_that_fails_is_an_error_of_the_suite_with_what_it_wrote() -> None:
    with pytest.raises(SuiteFault) as caught:
        await Toolbox(server=start_server("broken")).open(Opening("c", "s"))
    assert caught.value.blame == "suite"
    assert "mcp_server.py broken cannot be reached" in str(caught.value)
    assert "no configuration" in (caught.value.evidence or "")
    with pytest.raises(SuiteFault) as caught:
        await answers(Toolbox(server=start_server(timeout=15)), "die")
    assert "did not answer look_up" in str(caught.value)
    assert "the disk is full" in (caught.value.evidence or "")
    with pytest.raises(SuiteFault, match="the MCP server no-such-program cannot be reached"):
        await McpServer(["no-such-program"], HERE).open()


async def test_a_server_that_hangs_is_given_up() -> None:
    hanging = McpServer([sys.executable, "-c", "import time; time.sleep(60)"], HERE, timeout=0.5)
    start_time = time.perf_counter()
    with pytest.raises(SuiteFault, match=r"not within 0\.5 s") as caught:
        await hanging.open()
    assert caught.value.kind == "timeout"
    assert time.perf_counter() - start_time < 20


@pytest.fixture
def url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([*COMMAND, "http", str(port)], cwd=HERE, stderr=subprocess.DEVNULL) as process:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


async def test_a_server_is_reached_by_its_url(url: str) -> None:
    [message] = await answers(Toolbox(server=McpServer(url=url, headers={"X-Shop": "7"}, timeout=30)), "a")
    assert message.content == "a is sent (1, nowhere)"
    with pytest.raises(SuiteFault, match="cannot be reached"):
        await McpServer(url=url.replace("/mcp", "/none"), timeout=5).open()


def test_a_variable_that_is_not_set_is_told() -> None:
    with pytest.raises(UsageError, match=r"mcp.env: the environment variable NO_SUCH_NAME is not set"):
        start_server(env=("NO_SUCH_NAME",))
