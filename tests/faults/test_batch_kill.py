"""Killed between each two steps of a batch: every conversation is scored once, and no question is submitted twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forked import program
from vivavoce.store.store import Store
from vivavoce.testing import BatchServer

KILLER = """
import os, signal, sys
from importlib import import_module

from vivavoce.cli.main import main
from vivavoce.features.batches import rounds

place, name, when, *arguments = sys.argv[1:]
rounds.PATIENCE = rounds.Patience(first=0.01, most=0.05, settling=0.0)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


if place:
    module, _, owner = place.partition(":")
    owner = getattr(import_module(module), owner)
    step = getattr(owner, name)

    async def awaited(*given, **named):
        if when == "before":
            die()
        await step(*given, **named)
        die()

    def done(*given, **named):
        if when == "before":
            die()
        step(*given, **named)
        die()

    setattr(owner, name, awaited if step.__code__.co_flags & 0x80 else done)
main(arguments)
"""
STORE = "vivavoce.store.batches:Batches"
OPENAI, ANTHROPIC = (
    "vivavoce.features.batches.openai:OpenAIBatches",
    "vivavoce.features.batches.anthropic:AnthropicBatches",
)
SAMPLES, NOWHERE = 6, ("", "", "")


@dataclass
class Judged:
    """A judge, and the steps at each of which its process is killed, in their order."""

    server: BatchServer
    name: str
    environment: dict[str, str]
    steps: list[tuple[str, str, str]]


def answer(body: dict[str, Any]) -> dict[str, Any]:
    return {"violations": [], "reasoning": "Fine.", "confidence": 1}


def steps(service: str, *calls: str) -> list[tuple[str, str, str]]:
    """Return each step of a batch, before and after it."""
    places = [
        (STORE, "claim"),
        *((place, name) for call in calls for place, name in ((service, call), (STORE, "update"))),
        (service, "look"),
        ("vivavoce.store.replies:ReplyStore", "add"),
        (STORE, "settle"),
    ]
    return [(place, name, when) for place, name in places for when in ("before", "after")]


@pytest.fixture(params=["openai", "anthropic"])
def judged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Judged]:
    (tmp_path / "kill.py").write_text(KILLER)
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "NUMBER"}]
    rows = [json.dumps({"id": f"r{i}", "messages": talk}).replace("NUMBER", str(i)) for i in range(SAMPLES)]
    (tmp_path / "talks.jsonl").write_text("\n".join(rows) + "\n")
    with BatchServer(answer) as server:
        if request.param == "openai":
            yield Judged(server, f"{server.base_url}#m", {}, steps(OPENAI, "upload", "create"))
            return
        pytest.importorskip("pydantic_ai", reason="pip install 'vivavoce[providers]'")
        known = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}
        yield Judged(server, "anthropic:claude-sonnet-4-5", known, steps(ANTHROPIC, "create"))


def called(judged: Judged, step: tuple[str, str, str], *arguments: str) -> int:
    command = [str(program("python")), "kill.py", *step, *arguments]
    environment = {**os.environ, **judged.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), f"{step}: {done.stdout}{done.stderr}"
    return done.returncode


def test_killed_at_each_step_in_turn_and_resumed(judged: Judged) -> None:
    again = ("run", "--resume", "latest")
    begin = ("judge", "talks.jsonl", "--metrics", "safety", "--judge", judged.name, "--batch")
    killed = [called(judged, step, *(again if number else begin)) for number, step in enumerate(judged.steps)]
    assert killed == [-signal.SIGKILL] * len(judged.steps)
    assert called(judged, (STORE, "charged", "before"), *again) == -signal.SIGKILL
    assert called(judged, NOWHERE, *again) == 0
    assert_judged_once(judged)


def test_killed_at_each_step_and_asked_by_the_same_command(judged: Judged) -> None:
    begin = ("judge", "talks.jsonl", "--metrics", "safety", "--judge", judged.name, "--batch")
    killed = [called(judged, step, *begin) for step in judged.steps]
    assert killed == [-signal.SIGKILL] * len(judged.steps)
    assert called(judged, NOWHERE, *begin) == 0
    assert_judged_once(judged)


def assert_judged_once(judged: Judged) -> None:
    """Assert that the newest run has each conversation once, and that the service was asked each question once."""
    with Store.open(".vivavoce/vivavoce.db") as store:
        run = store.run("latest")
        found = list(store.outcomes(store.grading(run.id).id))
        batches = [batch for run in store.runs() for batch in store.batches.of_run(run.id)]
    assert sorted(one.attempt.key.sample_id for one in found) == [f"r{i}" for i in range(SAMPLES)]
    assert {one.scores["safety"].value for one in found} == {1.0}
    assert len(judged.server.request_names) == len(set(judged.server.request_names)) == SAMPLES
    assert [batch.requests for batch in batches] == [SAMPLES]
    assert run.status == "finished"
