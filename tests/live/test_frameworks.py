"""Conversations with agents of each framework, in its newest version, with a model on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from asking import asked
from live.frameworks.model import SAID, answer
from vivavoce.errors import TargetFault
from vivavoce.targets import A2ATarget, McpTarget, WebSocketTarget
from vivavoce.targets.websocket import Frames
from vivavoce.testing.loopback import LoopbackServer
from vivavoce.tools.mcp import McpServer

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "frameworks"
AGENTS_FOLDER = Path(__file__).parent / "agents"
OWN = ".venv"
PEERS = ".venv-peers/frameworks"


@dataclass(frozen=True)
class Case:
    """An object in a file, the environment with its framework, and what is known of the conversation with it."""

    agent: str
    package: str
    environment: str
    speaker: str | None = None
    tools: bool = True
    usage: bool = True
    handoff: str | None = None
    keys: str = "{}"

    def __str__(self) -> str:
        return f"{self.agent}-stream" if "stream" in self.keys else self.agent


STREAM = '{"stream": true}'
AGENTS, ADK = "transfer_to_weather_desk", "transfer_to_agent"
CASES = (
    Case("openai_agents_agent.py:agent", "openai-agents", OWN, "weather desk", handoff=AGENTS),
    Case("openai_agents_agent.py:agent", "openai-agents", OWN, "weather desk", handoff=AGENTS, keys=STREAM),
    Case("pydantic_ai_agent.py:agent", "pydantic-ai-slim", OWN),
    Case("pydantic_ai_agent.py:agent", "pydantic-ai-slim", OWN, keys=STREAM),
    Case("langgraph_agent.py:agent", "langgraph", PEERS),
    Case("langgraph_agent.py:agent", "langgraph", PEERS, keys=STREAM),
    Case("langgraph_agent.py:forgetful", "langgraph", PEERS),
    Case("langgraph_agent.py:chain", "langchain-core", PEERS, tools=False),
    Case("langgraph_agent.py:chain", "langchain-core", PEERS, tools=False, keys=STREAM),
    Case("crewai_agent.py:agent", "crewai", ".venv-peers/crewai", "weather desk"),
    Case("crewai_agent.py:crew", "crewai", ".venv-peers/crewai", "weather desk"),
    Case("google_adk_agent.py:agent", "google-adk", ".venv-adk", "weather_desk", handoff=ADK),
    Case("google_adk_agent.py:agent", "google-adk", ".venv-adk", "weather_desk", handoff=ADK, keys=STREAM),
    Case("autogen_agent.py:agent", "autogen-agentchat", ".venv-peers/autogen", "weather_desk"),
    Case("autogen_agent.py:team", "autogen-agentchat", ".venv-peers/autogen", "weather_desk"),
    Case("llama_index_agent.py:agent", "llama-index-core", PEERS, "weather desk"),
    Case("llama_index_agent.py:workflow", "llama-index-core", PEERS, "weather desk"),
    Case("llama_index_agent.py:engine", "llama-index-core", PEERS, tools=False, usage=False),
    Case("haystack_agent.py:agent", "haystack-ai", PEERS),
    Case("haystack_agent.py:agent", "haystack-ai", PEERS, keys=STREAM),
    Case("haystack_agent.py:pipeline", "haystack-ai", PEERS, tools=False),
)


def _version(package: str) -> str:
    """Return the version of a package that stands in the environment of several frameworks."""
    asking = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.check_output([ROOT / PEERS / "bin" / "python", "-c", asking], text=True).strip()


def _converse(case: Case, tmp_path: Path) -> dict[str, Any]:
    """Return what was recorded; the framework's Python finds there what it has not in ours, behind its own."""
    python = ROOT / case.environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {case.package}: `make {case.environment}/ready`")
    arguments = ["converse.py", case.agent, case.package, case.keys, *SAID]
    ours = (
        f"import runpy, sys; sys.path += {[sysconfig.get_path('purelib'), *sys.path[1:]]!r}; sys.argv = {arguments!r}"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(tmp_path),
        "OTEL_SDK_DISABLED": "true",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "HAYSTACK_TELEMETRY_ENABLED": "false",
    }
    with LoopbackServer(answer) as server:
        environment |= {"MODEL_URL": server.base_url, "MODEL_ROOT": server.url}
        program = f"{ours}; runpy.run_path('converse.py', run_name='__main__')"
        done = subprocess.run(
            [python, "-W", "ignore", "-c", program], cwd=FOLDER, env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.live
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_conversation_of_three_turns_with_tools(case: Case, tmp_path: Path) -> None:
    found = _converse(case, tmp_path)
    print(f"{case}: {case.package} {found['version']}")
    assert [turn.get("failure") for turn in found["turns"]] == [None] * 3
    first, second, third = [turn["messages"] for turn in found["turns"]]
    if case.agent.endswith(":pipeline"):
        assert third[-1]["content"] == "The first was none."  # a pipeline gets the last message alone
    else:
        assert third[-1]["content"].strip().endswith("The first was Rome.")
    for turns in (found["turns"], found["others"]):
        assert [turn["messages"][-1]["content"].strip()[-5:] for turn in turns[:2]] == ["Rome.", "Oslo."]
    assert len(set(found["ids"])) == 2
    for messages, city in ((first, "Rome"), (second, "Oslo")) if case.tools else ():
        calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
        assert calls[-1] == {"name": "weather", "arguments": json.dumps({"city": city})}
        assert [call["name"] for call in calls[:-1]] == ([case.handoff] if case.handoff and city == "Rome" else [])
        assert messages[-2]["role"] == "tool"
        assert messages[-2]["content"] == f"sunny in {city}"
        assert messages[-2]["tool_call_id"] == messages[-3]["tool_calls"][-1]["id"]
    assert first[-1].get("name") == case.speaker
    assert first[1].get("name") == ("reception" if case.handoff else case.speaker)
    used = [turn.get("usage") for turn in found["turns"]]
    if case.usage:
        models = [len([one for one in messages if one["role"] == "assistant"]) for messages in (first, second, third)]
        assert [usage["calls"] for usage in used] == models
        assert all(usage["input_tokens"] > 10 and usage["output_tokens"] > 2 for usage in used)
    times: list[dict[str, Any]] = [messages[1].get("metadata") or {} for messages in (first, second, third)]
    if "stream" in case.keys:
        assert all(0 < one["first_token"] < turn["seconds"] for one, turn in zip(times, found["turns"], strict=True))


@pytest.mark.live
def test_a_graph_that_ends_the_program_is_a_fault_and_no_end(tmp_path: Path) -> None:
    found = _converse(Case("langgraph_agent.py:ending", "langgraph", PEERS), tmp_path)
    failures = [turn["failure"] for turn in (*found["turns"], *found["others"])]
    assert {(one["blame"], one["kind"], one["message"]) for one in failures} == {
        ("target", "crash", "ending raised SystemExit: 0")
    }


@contextmanager
def _a2a(protocol: str) -> Generator[str]:
    """Yield the address of an agent that the package of A2A serves."""
    python = ROOT / PEERS / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no a2a-sdk: `make {PEERS}/ready`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    path, arguments = [sysconfig.get_path("purelib"), *sys.path[1:]], ["a2a_agent.py", str(port), protocol]
    program = f"import runpy, sys; sys.path += {path!r}; sys.argv = {arguments!r}; runpy.run_path({arguments[0]!r})"
    process = subprocess.Popen([python, "-W", "ignore", "-c", program], cwd=AGENTS_FOLDER)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.live
@pytest.mark.parametrize("protocol", ["1.0", "0.3"])
async def test_an_agent_of_a2a(protocol: str) -> None:
    with _a2a(protocol) as url:
        print("a2a-sdk", _version("a2a-sdk"))
        target = A2ATarget("weather", url)
        asks, *replies = await asked(target, "What is the weather?", "In Rome", *SAID[1:])
        with pytest.raises(TargetFault, match="the task of weather is failed: no sensor"):
            await asked(target, "fail")
    assert asks.messages[-1].text == "Which city?"
    assert [reply.messages[-1].text for reply in replies] == [
        *("It is sunny in Rome.", "It is sunny in Oslo.", "The first was Rome.")
    ]


@pytest.mark.live
async def test_a_bot_behind_the_websockets_package() -> None:
    websockets = pytest.importorskip("websockets.asyncio.server")
    print("websockets", version("websockets"))
    heard: list[str] = []

    async def bot(connection: Any) -> None:
        async for text in connection:
            heard.append(text)
            for word in " ".join(heard).split():
                await connection.send(json.dumps({"delta": f"{word} "}))
            await connection.send(json.dumps({"type": "done"}))

    async with websockets.serve(bot, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        target = WebSocketTarget("bot", url, frames=Frames(piece="delta", end={"type": "done"}))
        replies = await asked(target, "a", "b", "c")
    assert [reply.messages[0].text for reply in replies] == ["a ", "a b ", "a b c "]
    assert all(0 < (reply.messages[0].metadata or {})["first_token"] < 5 for reply in replies)


@pytest.mark.live
async def test_a_bot_behind_a_server_of_mcp() -> None:
    pytest.importorskip("mcp", reason="needs the extra [mcp]")
    print("mcp", version("mcp"))
    target = McpTarget("weather", McpServer([sys.executable, "mcp_bot.py"], AGENTS_FOLDER), "talk")
    for _ in range(2):
        replies = await asked(target, *SAID)
        assert [reply.messages[-1].text for reply in replies] == [
            *("It is sunny in Rome.", "It is sunny in Oslo.", "The first was Rome.")
        ]
