"""Recordings: written by one run, and read by another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.cli.main import main
from vivavoce.errors import SuiteFault, UsageError
from vivavoce.messages import ToolCall, ToolMessage
from vivavoce.records.run import Outcome
from vivavoce.suites.experiment import run_suite
from vivavoce.targets.target import Opening, World
from vivavoce.testing import LoopbackServer
from vivavoce.tools.answer import ToolRequest
from vivavoce.tools.recordings import Recordings, recorded_call

HEAD = '{"vivavoce_recording": 1}'


def build_request(world: World, sample: str = "s", **arguments: Any) -> ToolRequest:
    return ToolRequest("look_up", arguments, [], world, Opening("c", sample))


def recording(path: Path, *lines: dict[str, Any]) -> Recordings:
    path.write_text("\n".join([HEAD, *(json.dumps({"kind": "tool", "name": "look_up", **line}) for line in lines)]))
    return Recordings.read(path)


async def test_results_are_found_by_their_arguments_in_their_order_and_by_row(tmp_path: Path) -> None:
    recordings = recording(
        tmp_path / "r.jsonl",
        {"arguments": {"order": 1}, "result": {"status": "sent"}},
        {"arguments": {"order": 1}, "result": "delivered"},
        {"arguments": {"order": 1}, "error": "not yours", "sample": "other"},
        {"arguments": {"order": 2}, "result": None},
    )
    world = World()
    answers = [await recordings.answer(build_request(world, order=1)) for _ in range(3)]
    assert [answer.content for answer in answers][:2] == ['{"status": "sent"}', "delivered"]
    other = await recordings.answer(build_request(world.copy(), "other", order=1))
    assert (other.content, other.failed, other.source) == ("Error: not yours", True, "recording")
    assert (await recordings.answer(build_request(world, order=2.0))).content == "null"


async def test_a_miss_says_how_to_record(tmp_path: Path) -> None:
    recordings = recording(tmp_path / "r.jsonl", {"arguments": {"order": 1}, "result": "sent"})
    with pytest.raises(SuiteFault) as caught:
        await recordings.answer(build_request(World(), order="1"))
    assert 'r.jsonl has no result of look_up({"order": "1"})' in str(caught.value)
    assert "viva export RUN --format recordings --output r.jsonl" in str(caught.value)
    assert caught.value.evidence == 'recorded: look_up({"order": 1})'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty; create a recording with viva export RUN --format recordings"),
        ('{"vivavoce_replies": 1}', "is not a recording"),
        ('{"vivavoce_recording": 3}', "was written by a newer vivavoce; upgrade it"),
        (HEAD + '\n{"kind": "repy"}', "kind: must be 'tool', 'reply' or 'end', got 'repy'"),
        (HEAD + '\n{"kind": "tool", "name": "a"}', "needs either result or error"),
        (HEAD + '\n{"kind": "tool", "name": "a", "result": 1, "reslt": 2}', "reslt: unknown field"),
        (HEAD + '\n{"kind": "tool"', "r.jsonl:2"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(UsageError) as caught:
        Recordings.read(tmp_path / "r.jsonl")
    message = str(caught.value)
    assert problem in message
    assert f"r.jsonl:{max(1, text.count(chr(10)) + 1)}" in message


def test_a_call_that_no_tool_answered_is_not_recorded() -> None:
    call = ToolCall(id="c", name="a", args={})
    refused = ToolMessage(content="Error: no", metadata={"answered_by": "user", "failed": True})
    assert recorded_call("s", call, refused) is None
    broken = ToolCall.model_validate({"function": {"name": "a", "arguments": "{"}})
    assert recorded_call("s", broken, ToolMessage(content="1")) is None
    failed = ToolMessage(content="Error: no", metadata={"answered_by": "function", "failed": True, "seconds": 0.5})
    recorded = recorded_call("s", call, failed)
    assert recorded is not None
    assert recorded.model_dump() == {
        "kind": "tool",
        "sample": "s",
        "name": "a",
        "arguments": {},
        "error": "no",
        "seconds": 0.5,
    }


BOT = """
from vivavoce.errors import ToolError

def look_up(order):
    if order == "2":
        raise ToolError("gone")
    return f"order {order} is sent"
"""
SUITE = """
name: orders
dataset:
  rows: [{id: one, input: "1", expect: {contains: order 1 is sent}}, {id: two, input: "2", expect: {contains: Error}}]
target:
  kind: openai
  base_url: BASE
  model_handles: [m]
  tools: [{type: function, function: {name: look_up, parameters: {type: object, properties: {order: {}}}}}]
  handlers: {look_up: HANDLER}
"""


def model(body: dict[str, Any]) -> Any:
    last = body["messages"][-1]
    return (
        last["content"]
        if last["role"] == "tool"
        else [ToolCall(id="c", name="look_up", args={"order": last["content"]})]
    )


def test_a_run_is_recorded_by_an_export_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT)
    store = str(tmp_path / "store.db")
    suite, recorded = tmp_path / "suite.yaml", tmp_path / "calls.jsonl"
    with LoopbackServer(model) as server:
        suite.write_text(SUITE.replace("BASE", server.base_url).replace("HANDLER", "bot.py:look_up"))
        assert run_suite(suite, store=store).summary.verdict == "pass"
        with pytest.raises(SystemExit) as ended:
            main(["export", "latest", "--format", "recordings", "--output", str(recorded), "--store", store])
        assert ended.value.code in (0, None)
        lines = [json.loads(line) for line in recorded.read_text().splitlines()]
        assert [line.get("kind") for line in lines] == [None, "tool", "reply", "tool", "reply", "end"]
        assert [line.get("result", line.get("error")) for line in lines if line.get("kind") == "tool"] == [
            "order 1 is sent",
            "gone",
        ]
        suite.write_text(SUITE.replace("BASE", server.base_url).replace("HANDLER", "{recordings: calls.jsonl}"))
        result = run_suite(suite, store=store)
    assert result.summary.verdict == "pass"
    assert {origin_of(outcome) for outcome in result.outcomes()} == {"recording"}


def origin_of(outcome: Outcome) -> str:
    messages = outcome.attempt.trajectory.messages
    return next((message.metadata or {})["answered_by"] for message in messages if isinstance(message, ToolMessage))
