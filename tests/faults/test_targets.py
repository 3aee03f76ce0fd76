"""A target that misbehaves is an error of its own sample, with the evidence; the samples beside it are scored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vivavoce import run_suite
from vivavoce.records.run import Outcome
from vivavoce.run.options import RunOptions
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import broken_json, hang, html, huge, rate_limited, reset, server_error

FAULTS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "hangs": (hang, "timeout", "no answer within 1 s"),
    "resets": (reset, "connection", "connection broke"),
    "returns HTML": (html, "format", "is not JSON"),
    "returns 100 MB": (huge, "size", "larger than"),
    "returns invalid JSON": (broken_json, "format", "is not JSON"),
    "breaks": (server_error, "http", "500"),
}


def write_suite(folder: Path, url: str, handles: tuple[str, ...] = ("bot",), retries: int = 1) -> Path:
    rows = [
        {"id": f"s{i}", "input": ["hello", "bad" if i == 2 else "fine"], "ground_truth": ["ok", "ok"]} for i in range(5)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    target = {"kind": "openai", "base_url": url, "model_handles": handles, "timeout": 1.0, "max_retries": retries}
    spec = {
        "name": "faults",
        "dataset": "d.jsonl",
        "target": target,
        "graders": {"right": {"kind": "tool", "function": "contains"}},
    }
    (folder / "suite.yaml").write_text(json.dumps(spec))
    return folder / "suite.yaml"


def outcomes() -> dict[tuple[str, str], Outcome]:
    with Store.open(settings().store) as store:
        grading = store.grading(store.run("latest").id)
        return {(o.attempt.key.target, o.attempt.key.sample_id): o for o in store.outcomes(grading.id)}


@pytest.mark.parametrize("name", FAULTS)
def test_one_bad_answer_spoils_its_own_sample_only(name: str, tmp_path: Path) -> None:
    fault, kind, said = FAULTS[name]

    def answer(body: dict[str, Any]) -> Any:
        return fault() if body["messages"][-1]["content"] == "bad" else "ok"

    with LoopbackServer(answer) as server:
        result = run_suite(write_suite(tmp_path, server.url))
    right = result.summary.grader("right")
    assert (right.scored, right.errors, right.mean) == (4, 1, 1.0)
    bad = outcomes()["bot", "s2"]
    failure = bad.attempt.failure
    assert failure is not None
    assert (failure.blame, failure.kind) == ("target", kind)
    assert said in failure.message
    if kind in ("format", "size"):
        assert failure.evidence
        assert len(failure.evidence) < 5000
    assert bad.attempt.trajectory.turns[0].messages[-1].text == "ok", "the turn before it is kept"
    turns = bad.scores["right"].turns or []
    assert [(turn.state, turn.value) for turn in turns] == [("scored", 1.0), ("error", None)]


def test_rate_limits_slow_a_run_down_and_lose_nothing(tmp_path: Path) -> None:
    seen = 0

    def answer(body: dict[str, Any]) -> Any:
        nonlocal seen
        seen += 1
        return rate_limited(0.05) if seen % 4 == 0 else "ok"

    with LoopbackServer(answer) as server:
        result = run_suite(write_suite(tmp_path, server.url, retries=8), RunOptions(trials=4))
    right = result.summary.grader("right")
    assert (right.scored, right.errors, right.mean) == (20, 0, 1.0)
    assert len(server.requests) == 40 + seen // 4


def test_every_model_handle_is_asked_and_reported_apart(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        return "ok" if body["model"] == "good/one" or body["messages"][-1]["content"] == "hello" else "no"

    with LoopbackServer(answer) as server:
        result = run_suite(write_suite(tmp_path, server.url, ("good/one", "bad-one")))
    assert result.summary.grader("right", "good/one").mean == 1.0
    assert result.summary.grader("right", "bad-one").mean == 0.5
    assert result.summary.attempts == 10
    assert len(outcomes()) == 10


def test_conversations_are_apart_from_each_other(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        users = [m["content"] for m in body["messages"] if m["role"] == "user"]
        return "ok" if users[0] == "hello" and len(users) <= 2 else f"heard {users}"

    with LoopbackServer(answer, delay=0.005) as server:
        result = run_suite(write_suite(tmp_path, server.url), RunOptions(trials=8, max_concurrent=10))
    assert result.summary.grader("right").mean == 1.0


def test_a_target_that_is_not_there_is_named_with_its_address(tmp_path: Path) -> None:
    result = run_suite(write_suite(tmp_path, "http://127.0.0.1:9/v1"))
    assert result.exit_code == 3
    failure = outcomes()["bot", "s0"].attempt.failure
    assert failure is not None
    assert failure.kind == "connection"
    assert "127.0.0.1:9" in failure.message
