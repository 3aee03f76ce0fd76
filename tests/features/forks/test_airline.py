"""Forks of recorded conversations with an airline: tools replayed, and an agent that fails at a known turn at times."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from recordings import RECORDINGS, needs_recordings
from vivavoce import RunOptions, run_suite
from vivavoce.features.forks.experiment import ForkRequest, fork_run
from vivavoce.features.forks.report import Forked, read_fork
from vivavoce.files.rows import read_rows
from vivavoce.records.score import conversation_name
from vivavoce.report.capture import find_conversation
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

AIRLINE = RECORDINGS / "tau_bench_airline"
WRONG = "I have cancelled all of your reservations."
ODDS = 0.35
"""How often the agent fails at its turn."""

Message = dict[str, Any]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "kept.db") as opened:
        yield opened


def conversations(turns: int, many: int) -> list[list[Message]]:
    """Return some recorded conversations with so many turns at least, which end with words of the agent."""
    rows = read_rows(AIRLINE / "sierra__gpt-4o__airline.jsonl", "jsonl")
    found: list[list[Message]] = []
    for _, row in rows:
        messages: list[Message] = row["messages"]
        while messages[-1]["role"] == "user":  # the end of a test: nobody answers it
            messages = messages[:-1]
        users = sum(message["role"] == "user" for message in messages)
        if users >= turns and messages[-1]["role"] == "assistant" and messages[-1].get("content"):
            found.append(messages)
    return found[:many]


def agent(recorded: Sequence[Message], fails_at: int) -> Callable[[Message], Any]:
    """Return a model that does what was recorded, but in one turn fails at times, and is of no use from then on."""
    drawn, lock = random.Random(fails_at), threading.Lock()
    lines = [one for one in recorded if one["role"] != "system"]

    def answer(body: Message) -> Any:
        said = [one for one in body["messages"] if one["role"] != "system"]
        turn = sum(one["role"] == "user" for one in said)
        with lock:
            fails = turn == fails_at and said[-1]["role"] == "user" and drawn.random() < ODDS
        if fails or any(one.get("content") == WRONG for one in said):
            return WRONG
        message = lines[len(said)]
        calls = [
            {**call, "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for call in message.get("tool_calls") or ()
        ]
        return {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}

    return answer


def written(folder: Path, recorded: Sequence[Message], server: LoopbackServer) -> Path:
    """Write a suite whose tools answer as they did then."""
    answers = {one["tool_call_id"]: one["content"] for one in recorded if one["role"] == "tool"}
    calls = [call for one in recorded for call in one.get("tool_calls") or ()]
    lines = [
        {"kind": "tool", "name": one["name"], "arguments": one["arguments"], "result": answers[one["id"]]}
        for one in calls
    ]
    (folder / "tools.jsonl").write_text("\n".join(map(json.dumps, [{"vivavoce_recording": 1}, *lines])))
    names = dict.fromkeys(one["name"] for one in calls)
    definitions = json.loads((AIRLINE / "tools_airline.json").read_text())
    inputs = [one["content"] for one in recorded if one["role"] == "user"]
    suite: dict[str, Any] = {
        "name": "airline",
        "dataset": {"rows": [{"id": "task", "input": inputs, "ground_truth": recorded[-1]["content"], "state": {}}]},
        "target": {
            "kind": "openai",
            "base_url": server.base_url,
            "model_handles": ["agent"],
            "system_prompt": recorded[0]["content"],
            "tools": definitions,
            "handlers": {name: {"recordings": "tools.jsonl"} for name in names},
            "max_steps": 30,
        },
        "graders": {"done": {"kind": "function", "function": "exact_match", "extractor": "last_assistant"}},
    }
    path = folder / "airline.yaml"
    path.write_text(json.dumps(suite))
    return path


async def searched(store: Store, path: Path) -> Forked:
    """Fork the first conversation of a suite that failed."""
    run = run_suite(path, RunOptions(trials=20), store=store.place).run
    failed = next(one for one in store.outcomes(store.grading(run.id).id) if not one.scores["done"].passed)
    name = conversation_name("task", failed.attempt.key.trial)
    stored, outcome = find_conversation(store, f"{run.id}/{name}")
    result = await fork_run(stored, outcome, ForkRequest(trials=200), store=store).execute()
    return read_fork(store, store.run(result.run.id))


@needs_recordings
async def test_forks_of_airline_tasks_find_the_turn_with_at_most_half_the_trials(store: Store, tmp_path: Path) -> None:
    found: list[tuple[int, Forked]] = []
    for number, recorded in enumerate(conversations(turns=6, many=5)):
        turns = sum(one["role"] == "user" for one in recorded)
        fails_at = 2 + number * (turns - 2) // 4
        folder = tmp_path / str(number)
        folder.mkdir()
        with LoopbackServer(agent(recorded, fails_at)) as server:
            found.append((fails_at, await searched(store, written(folder, recorded, server))))
    assert len(found) == 5
    assert [one.turn for _, one in found] == [fails_at - 1 for fails_at, _ in found]
    assert sum(place.errors for _, one in found for place in one.places) == 0
    spent, fixed = sum(one.spent for _, one in found), sum(one.fixed or 0 for _, one in found)
    assert spent <= fixed / 2
