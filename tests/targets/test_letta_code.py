"""The command line of Letta Code, played by a script that writes lines of the real one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import RateLimited, SuiteFault, TargetFault, UsageError
from vivavoce.messages import HumanMessage
from vivavoce.records.score import Usage
from vivavoce.targets.letta_code import LettaCodeOptions, LettaCodeSession, LettaCodeTarget
from vivavoce.targets.letta_server import LettaAccess
from vivavoce.targets.target import Opening
from vivavoce.wire.own_traffic import of_run

INIT = {"type": "system", "subtype": "init", "agent_id": "agent-1", "conversation_id": "conv-1"}
DONE = {"type": "result", "subtype": "success"}
USED = {"type": "message", "message_type": "usage_statistics", "prompt_tokens": 5, "completion_tokens": 2}

PLAY = """\
import json, os, sys
lines = json.load(open(sys.argv[0] + ".json"))
for asked in sys.stdin:
    env = {**os.environ, "CWD": os.getcwd()}
    open(sys.argv[0] + ".log", "a").write(json.dumps([json.loads(asked), sys.argv[1:], env]) + "\\n")
    for line in lines.pop(0):
        if line == "exit":
            print("it broke, key sk-secret", file=sys.stderr)
            sys.exit(3)
        sys.stdout.write(line)
        sys.stdout.flush()
"""

Play = Callable[..., AbstractAsyncContextManager[LettaCodeSession]]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "letta"
    path.write_text(f"#!{sys.executable}\n{PLAY}")
    path.chmod(0o755)
    return path


@pytest.fixture
def play(script: Path) -> Play:
    @asynccontextmanager
    async def playing(
        *turns: Sequence[dict[str, Any] | str], extra_vars: dict[str, Any] | None = None, **options: Any
    ) -> AsyncGenerator[LettaCodeSession]:
        lines = [[line if isinstance(line, str) else json.dumps(line) + "\n" for line in turn] for turn in turns]
        Path(f"{script}.json").write_text(json.dumps(lines))
        target = LettaCodeTarget(
            LettaCodeOptions(command=str(script), directory=script.parent, **options),
            model="openai/gpt",
            access=LettaAccess("http://localhost:1", "sk-secret"),
        )
        session = await target.open(Opening("attempt-1", "sample-1", extra_vars=extra_vars or {}))
        try:
            yield session
        finally:
            await session.close()

    return playing


def says(text: str, id_: str = "m1") -> dict[str, Any]:
    return {
        "type": "message",
        "message_type": "assistant_message",
        "id": id_,
        "content": [{"type": "text", "text": text}],
    }


def queued(item: str, source: str) -> list[dict[str, Any]]:
    return [
        {"type": "queue_item_enqueued", "item_id": item, "source": source},
        {"type": "queue_batch_dequeued", "item_ids": [item]},
    ]


def asked(script: Path) -> list[Any]:
    return [json.loads(line) for line in Path(f"{script}.log").read_text().splitlines()]


async def test_pieces_of_one_message_are_one_message(play: Play) -> None:
    async with play([INIT, says("Pa"), says("ris"), USED, USED, DONE]) as session:
        reply = await session.send([HumanMessage(content="Hi")])
    assert [m.text for m in reply.messages] == ["Paris"]
    assert reply.usage == Usage(input_tokens=10, output_tokens=4, calls=2)
    assert session.id == "conv-1"


async def test_what_the_user_says_is_on_stdin_and_never_an_argument(play: Play, script: Path) -> None:
    async with play([INIT, DONE], flags="--toolset 'none at all'", backend="cloud") as session:
        await session.send([HumanMessage(content="top secret plan")])
    ((line, arguments, _),) = asked(script)
    assert line == {"type": "user", "message": {"role": "user", "content": "top secret plan"}}
    assert "top secret plan" not in str(arguments)
    assert arguments[4:] == [
        *("--backend", "cloud", "--new-agent", "--model", "openai/gpt", "--yolo", "--toolset", "none at all")
    ]


async def test_a_sample_sets_the_environment_of_its_process(play: Play, script: Path) -> None:
    with of_run("nightly-1"):
        async with play([INIT, DONE], extra_vars={"env": {"CITY": "Paris"}, "memory_dir": "memory"}) as session:
            await session.send([HumanMessage(content="Hi")])
    env = asked(script)[0][2]
    assert env["BAGGAGE"] == "vivavoce.run=nightly-1"
    assert (env["CITY"], env["LETTA_API_KEY"]) == ("Paris", "sk-secret")
    assert env["MEMORY_DIR"] == str(script.parent / "memory")


async def test_it_works_in_the_folder_of_its_model_and_a_text_may_name_it(play: Play, script: Path) -> None:
    options = {"working_dir": "out/{model}", "flags": "--skills .skills --import @a/b --toolset none"}
    async with play([INIT, DONE], **options) as session:
        await session.send([HumanMessage(content="Fix {pwd}/task.py")])
    ((line, arguments, env),) = asked(script)
    folder = script.parent.resolve() / "out/gpt"
    assert (env["CWD"], line["message"]["content"]) == (str(folder), f"Fix {folder}/task.py")
    skills, imported = script.parent.resolve() / ".skills", script.parent.resolve() / "@a/b"
    assert arguments[-6:] == ["--skills", str(skills), "--import", str(imported), "--toolset", "none"]


async def test_a_folder_that_cannot_be_made_is_a_mistake_in_the_suite(play: Play, script: Path) -> None:
    (script.parent / "out").write_text("a file")
    with pytest.raises(UsageError, match=r"working_dir .*out/gpt cannot be created"):
        async with play([INIT, DONE], working_dir="out/{model}"):
            pass


async def test_a_set_up_gets_a_client_of_its_server() -> None:
    target = LettaCodeTarget(access=LettaAccess("http://localhost:1", "sk-secret"))
    client = target.client
    assert client is not None
    assert client is target.client
    assert str(client.base_url) == "http://localhost:1"
    await target.close()
    assert LettaCodeTarget(LettaCodeOptions(backend="local")).client is None


async def test_a_turn_that_nobody_asked_for_is_not_the_answer(play: Play) -> None:
    unasked = [*queued("q-2", "task_notification"), says("The task is done.", "m2"), USED, DONE]
    first = [INIT, *queued("q-1", "user"), says("Started."), DONE]
    async with play(first, [*unasked, *queued("q-3", "user"), says("Madrid.", "m3"), USED, DONE]) as session:
        one = await session.send([HumanMessage(content="Start it")])
        two = await session.send([HumanMessage(content="Capital of Spain?")])
    assert [m.text for m in one.messages] == ["Started."]
    assert [m.text for m in two.messages] == ["Madrid."]
    assert two.usage == Usage(input_tokens=10, output_tokens=4, calls=2)


async def test_torn_and_foreign_lines_do_not_lose_an_event(play: Play) -> None:
    line = json.dumps(says("Paris"))
    torn = [line[:40] + "\n", line[40:] + "\n"]
    glued = ["progress 40%" + json.dumps(USED) + "\n"]
    async with play(["Updating...\n", INIT, *torn, "{half\n", *glued, DONE]) as session:
        reply = await session.send([HumanMessage(content="Hi")])
    assert [m.text for m in reply.messages] == ["Paris"]
    assert reply.usage is not None
    assert reply.usage.input_tokens == 5


async def test_a_line_of_twenty_megabytes_is_read(play: Play) -> None:
    async with play([INIT, says("x" * 20_000_000), DONE]) as session:
        reply = await session.send([HumanMessage(content="Hi")])
    assert len(reply.messages[0].text) == 20_000_000


async def test_an_end_without_a_result_is_a_fault_with_the_evidence(play: Play) -> None:
    async with play([INIT, says("Par"), "Segmentation fault\n", "exit"]) as session:
        with pytest.raises(TargetFault, match="exit code 3") as caught:
            await session.send([HumanMessage(content="Hi")])
    assert caught.value.evidence == "Segmentation fault\nit broke, key ***"
    assert not caught.value.retryable


async def test_a_rate_limit_of_the_model_is_one_but_not_to_be_repeated(play: Play) -> None:
    error = {"type": "error", "message": "429: slow down", "api_error": {"error_type": "llm_error"}}
    result = {"type": "result", "subtype": "error", "stop_reason": "error"}
    async with play([INIT, error, result]) as session:
        with pytest.raises(RateLimited, match="slow down") as caught:
            await session.send([HumanMessage(content="Hi")])
    assert not caught.value.retryable


async def test_an_error_that_it_recovered_from_is_none(play: Play) -> None:
    error = {"type": "error", "message": "500: once", "stop_reason": "error"}
    async with play([INIT, error, says("Paris"), DONE]) as session:
        reply = await session.send([HumanMessage(content="Hi")])
    assert [m.text for m in reply.messages] == ["Paris"]


async def test_a_hanging_turn_can_be_given_up(play: Play) -> None:
    async with play([INIT]) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await session.send([HumanMessage(content="Hi")])
        with pytest.raises(TargetFault, match="exit code -9"):
            await session.send([HumanMessage(content="Hi")])


async def test_a_missing_command_says_what_to_install() -> None:
    target = LettaCodeTarget(LettaCodeOptions(command="no-such-letta"))
    with pytest.raises(UsageError, match="pip install letta"):
        await target.open(Opening("attempt-1", "sample-1"))


async def test_an_environment_that_is_none_is_the_suites_fault(play: Play) -> None:
    with pytest.raises(SuiteFault, match=r"extra_vars\.env"):
        async with play([], extra_vars={"env": ["PATH"]}):
            pass


@pytest.mark.parametrize("flags", ["--output-format text", "-p hello", "--skills 'open"])
def test_flags_that_cannot_be_are_refused(flags: str) -> None:
    with pytest.raises(UsageError, match="flags"):
        LettaCodeOptions(flags=flags)


def test_an_agent_script_needs_a_server() -> None:
    async def factory(*_: object) -> str:
        return "agent-1"

    with pytest.raises(UsageError, match="local"):
        LettaCodeTarget(LettaCodeOptions(backend="local"), factory=factory)
