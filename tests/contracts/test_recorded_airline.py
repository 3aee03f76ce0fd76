"""Real conversations of an airline agent as a recording, and a scripted agent with known differences against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recordings import RECORDINGS, needs_recordings
from vivavoce import run_suite
from vivavoce.messages import ToolCall
from vivavoce.report.export import export
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

AIRLINE = RECORDINGS / "tau_bench_airline"
OTHER_WORDS, OTHER_CALLS = "t1", "t3"
"""The rows in which the new agent says and calls something else."""
GRADER = "{kind: metric, metric: response_length, threshold: 1000}"
LOG = "name: airline\ndriver: replay\ndataset: log.jsonl\n"


def answered(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a row up to the last answer that the user got in words."""
    messages = [one for one in row["messages"] if one["role"] != "system"]
    while messages[-1]["role"] != "assistant" or not messages[-1]["content"]:
        messages.pop()
    return messages


def agent(rows: Mapping[str, list[dict[str, Any]]]) -> Callable[[dict[str, Any]], Any]:
    by_first = {messages[0]["content"]: name for name, messages in rows.items()}

    def answer(body: dict[str, Any]) -> Any:
        said = [one for one in body["messages"] if one["role"] != "system"]
        name, done = by_first[said[0]["content"]], sum(one["role"] == "assistant" for one in said)
        message = [one for one in rows[name] if one["role"] == "assistant"][done]
        if calls := message.get("tool_calls"):
            call = ToolCall.model_validate(calls[0])
            more = {"priority": "high"} if name == OTHER_CALLS else {}
            return [ToolCall(id=f"c{done}", name=call.name, args={**call.args, **more})]
        return message["content"] + (" Anything else?" if name == OTHER_WORDS and done == 2 else "")

    return answer


@needs_recordings
def test_a_scripted_agent_is_as_recorded_but_where_it_was_told_otherwise(tmp_path: Path) -> None:
    lines = (AIRLINE / "sierra__gpt-4o__airline.jsonl").read_text().splitlines()[:8]
    rows = {f"t{number}": answered(json.loads(line)) for number, line in enumerate(lines)}
    asked = {
        name: [message["content"] for message in messages if message["role"] == "user"]
        for name, messages in rows.items()
    }
    write(tmp_path / "log.jsonl", [{"id": name, "messages": messages} for name, messages in rows.items()])
    write(tmp_path / "rows.jsonl", [{"id": name, "input": said} for name, said in asked.items()])
    (tmp_path / "log.yaml").write_text(f"{LOG}graders: {{length: {GRADER}}}\n")
    store = str(tmp_path / "kept.db")
    logged = run_suite(tmp_path / "log.yaml", store=store)
    with Store.open(store) as opened:
        export(opened, logged.run, logged.grading, "recordings", tmp_path / "calls.jsonl")
    with LoopbackServer(agent(rows)) as server:
        tools = (AIRLINE / "tools_airline.json").read_text().replace("\n", " ")
        target = f"{{kind: openai, base_url: '{server.base_url}', model_handles: [m], max_steps: 30, tools: {tools}}}"
        suite = f"name: airline\ndataset: rows.jsonl\nrecording: calls.jsonl\ntarget: {target}\n"
        (tmp_path / "suite.yaml").write_text(f"{suite}graders: {{length: {GRADER}}}\n")
        (found,) = run_suite(tmp_path / "suite.yaml", store=store).summary.recording
    made = sum(len(one.get("tool_calls") or ()) for name in rows if name != OTHER_CALLS for one in rows[name])
    assert (found.conversations, found.same, found.errors) == (8, 6, 0)
    assert {(one.kind, one.conversations, one.sample) for one in found.different} == {
        ("reply", 1, OTHER_WORDS),
        ("unrecorded", 1, OTHER_CALLS),
    }
    assert (found.calls.answered, found.calls.missed, found.calls.live) == (made, 1, 0)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
