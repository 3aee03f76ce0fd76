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
    """Return some recorded conversations with at least this many turns, which end with words of the agent."""
    rows = read_rows(AIRLINE / "sierra__gpt-4o__airline.jsonl", "jsonl")
    result: list[list[Message]] = []
    for _, row in rows:
        messages: list[Message] = row["messages"]
        while messages[-1]["role"] == "user":  # the end of a test: nobody answers it
            messages = messages[:-1]
        users = sum(message["role"] == "user" for message in messages)
        if users >= turns and messages[-1]["role"] == "assistant" and messages[-1].get("content"):
            result.append(messages)
    return result[:many]


def agent(recorded: Sequence[Message], fails_at: int) -> Callable[[Message], Any]:
    """Return a model that does what was recorded, but in one turn fails at times, and is of no use from then on."""
    dice, lock = random.Random(fails_at), threading.Lock()
    lines = [message for message in recorded if message["role"] != "system"]

    def answer(body: Message) -> Any:
        messages = [message for message in body["messages"] if message["role"] != "system"]
        turn = sum(message["role"] == "user" for message in messages)
        with lock:
            fails = turn == fails_at and messages[-1]["role"] == "user" and dice.random() < ODDS
        if fails or any(message.get("content") == WRONG for message in messages):
            return WRONG
        message = lines[len(messages)]
        calls = [
            {**call, "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for call in message.get("tool_calls") or ()
        ]
        return {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}

    return answer


def write_suite(folder: Path, recorded: Sequence[Message], server: LoopbackServer) -> Path:
    """Write a suite whose tools answer as they did then."""
    answers = {message["tool_call_id"]: message["content"] for message in recorded if message["role"] == "tool"}
    calls = [call for message in recorded for call in message.get("tool_calls") or ()]
    lines = [
        {"kind": "tool", "name": call["name"], "arguments": call["arguments"], "result": answers[call["id"]]}
        for call in calls
    ]
    (folder / "tools.jsonl").write_text("\n".join(map(json.dumps, [{"vivavoce_recording": 1}, *lines])))
    names = dict.fromkeys(call["name"] for call in calls)
    definitions = json.loads((AIRLINE / "tools_airline.json").read_text())
    inputs = [message["content"] for message in recorded if message["role"] == "user"]
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


async def search(store: Store, path: Path) -> Forked:
    """Fork the first conversation of a suite that failed."""
    run = run_suite(path, RunOptions(trials=20), store=store.place).run
    failed = next(outcome for outcome in store.outcomes(store.grading(run.id).id) if not outcome.scores["done"].passed)
    name = conversation_name("task", failed.attempt.key.trial)
    stored, outcome = find_conversation(store, f"{run.id}/{name}")
    result = await fork_run(stored, outcome, ForkRequest(trials=200), store=store).execute()
    return read_fork(store, store.run(result.run.id))


@needs_recordings
async def test_forks_of_airline_tasks_find_the_turn_with_at_most_half_the_trials(store: Store, tmp_path: Path) -> None:
    result: list[tuple[int, Forked]] = []
    for number, recorded in enumerate(conversations(turns=6, many=5)):
        turns = sum(message["role"] == "user" for message in recorded)
        fails_at = 2 + number * (turns - 2) // 4
        folder = tmp_path / str(number)
        folder.mkdir()
        with LoopbackServer(agent(recorded, fails_at)) as server:
            result.append((fails_at, await search(store, write_suite(folder, recorded, server))))
    assert len(result) == 5
    assert [fork.turn for _, fork in result] == [fails_at - 1 for fails_at, _ in result]
    assert sum(place.errors for _, fork in result for place in fork.places) == 0
    spent, fixed = sum(fork.spent for _, fork in result), sum(fork.fixed or 0 for _, fork in result)
    assert spent <= fixed / 2
