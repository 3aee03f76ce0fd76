"""The real Letta Code command line, with its local backend, against a model on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from vivavoce.errors import TargetFault
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from vivavoce.records.score import Usage
from vivavoce.targets.letta_code import LettaCodeOptions, LettaCodeTarget
from vivavoce.targets.target import Opening

from .endpoint import Endpoint, capitals

ROOT = Path(__file__).parents[2]
MODEL = "openai-compatible/capitals"
WAITS = "tail -s 4711 -f /dev/null"


def letta() -> str | None:
    named = os.environ.get("VIVA_LETTA")
    own = ROOT / ".venv-letta" / "bin" / "letta"
    return named or (str(own) if own.exists() else shutil.which("letta"))


pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        letta() is None, reason="no Letta Code: `python3 -m venv .venv-letta && .venv-letta/bin/pip install letta`"
    ),
]


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncGenerator[Endpoint]:
    async with capitals() as endpoint:
        connect = ["connect", "openai-compatible", "--backend", "local", "--base-url", endpoint.url, "--api-key", "x"]
        env = {**os.environ, **home(tmp_path)}
        setup = await asyncio.create_subprocess_exec(str(letta()), *connect, env=env, stdout=subprocess.DEVNULL)
        assert await setup.wait() == 0
        yield endpoint


def home(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "DO_NOT_TRACK": "1"}


def target(folder: Path, **options: str) -> LettaCodeTarget:
    return LettaCodeTarget(
        LettaCodeOptions(command=str(letta()), backend="local", directory=folder, **options),  # type: ignore[arg-type]
        model=MODEL,
    )


def opening(folder: Path) -> Opening:
    return Opening("attempt-1", "sample-1", extra_vars={"env": home(folder)})


async def test_three_turns_are_one_conversation(endpoint: Endpoint, tmp_path: Path) -> None:
    session = await target(tmp_path).open(opening(tmp_path))
    history: list[AnyMessage] = []
    asked = ["What is the capital of France?", "And of Germany?", "And of Spain?"]
    try:
        for words in asked:
            history.append(HumanMessage(content=words))
            reply = await session.send(history)
            history += reply.messages
            assert reply.usage == Usage(input_tokens=11, output_tokens=3, cached_input_tokens=4, calls=1)
        memory = await session.state()
    finally:
        await session.close()
    assert [m.text for m in history if isinstance(m, AIMessage)] == ["It is Paris.", "It is Berlin.", "It is Madrid."]
    assert [endpoint.said(i) for i in range(3)] == [asked[:1], asked[:2], asked]
    assert session.id is not None
    assert session.id.startswith("local-conv-")
    assert memory is not None
    assert {"human", "persona"} <= memory.keys()


async def test_tool_calls_and_their_results_are_in_the_turn(endpoint: Endpoint, tmp_path: Path) -> None:
    session = await target(tmp_path).open(opening(tmp_path))
    try:
        reply = await session.send([HumanMessage(content="run it")])
    finally:
        await session.close()
    calling, first, second, last = reply.messages
    assert isinstance(calling, AIMessage)
    assert [(call.id, call.name) for call in calling.tool_calls or ()] == [("call_a", "Bash"), ("call_b", "Bash")]
    assert calling.to_dict()["reasoning_content"] == "Let me see."
    assert isinstance(first, ToolMessage)
    assert isinstance(second, ToolMessage)
    assert [(m.tool_call_id, m.name, m.text.strip()) for m in (first, second)] == [
        ("call_a", "Bash", "hello"),
        ("call_b", "Bash", "world"),
    ]
    assert last.text == "It is done."
    assert reply.usage is not None
    assert reply.usage.calls == 2


async def test_a_call_that_needs_approval_is_denied_and_not_waited_for(endpoint: Endpoint, tmp_path: Path) -> None:
    session = await target(tmp_path, permission_mode="strict").open(opening(tmp_path))
    try:
        reply = await session.send([HumanMessage(content="run it")])
    finally:
        await session.close()
    results = [m for m in reply.messages if isinstance(m, ToolMessage)]
    assert len(results) == 2
    assert all("denied" in m.text and m.metadata == {"status": "error"} for m in results)


async def test_a_model_that_fails_is_a_fault_and_the_conversation_goes_on(endpoint: Endpoint, tmp_path: Path) -> None:
    session = await target(tmp_path).open(opening(tmp_path))
    try:
        with pytest.raises(TargetFault, match="no credit left") as caught:
            await session.send([HumanMessage(content="fail")])
        reply = await session.send([HumanMessage(content="fail"), HumanMessage(content="And of Spain?")])
    finally:
        await session.close()
    assert not caught.value.retryable
    assert [m.text for m in reply.messages] == ["It is Madrid."]


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found through /proc")
async def test_a_turn_given_up_while_a_tool_waits_leaves_no_process(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.command = WAITS
    session = await target(tmp_path).open(opening(tmp_path))
    sending = asyncio.create_task(session.send([HumanMessage(content="run it")]))
    try:
        async with asyncio.timeout(20):
            while not running(WAITS):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    finally:
        await session.close()
    assert not running(WAITS)
    assert not running(str(tmp_path))


async def test_arguments_it_refuses_are_told_with_what_it_wrote(endpoint: Endpoint, tmp_path: Path) -> None:
    session = await target(tmp_path, permission_mode="perhaps").open(opening(tmp_path))
    try:
        with pytest.raises(TargetFault, match="exit code 1") as caught:
            await session.send([HumanMessage(content="Hello")])
    finally:
        await session.close()
    assert "Invalid permission mode" in (caught.value.evidence or "")


def running(command: str) -> list[str]:
    """The ids of processes whose command line or environment holds a text."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "cmdline").read_bytes().replace(b"\0", b" ") + (folder / "environ").read_bytes()
        except OSError:
            continue
        if command.encode() in told and int(folder.name) != os.getpid():
            found.append(folder.name)
    return found
