"""Judging on Ray beside a judge of two replicas on Ray Serve, in one cluster."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vivavoce.store.store import Store

from .ray_runs import ENVIRONMENT, RAY, environment, free_port, viva

pytestmark = pytest.mark.live

APP = Path(__file__).parent / "agents" / "ray_serve.py"
COUNT, METRICS = 120, ("safety", "toxicity", "data_leakage")
ROUTER = {"imbalanced_threshold": 8, "match_rate_threshold": 0.5}


@contextmanager
def served(router: dict[str, Any] | None) -> Generator[tuple[str, str]]:
    """Give the address of the judge, and that of its cluster."""
    port = free_port()
    command = [str(ENVIRONMENT / "python"), str(APP), str(port), json.dumps(router)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as app:
        assert app.stdin is not None
        assert app.stdout is not None
        cluster = app.stdout.readline().strip()
        assert cluster, "Ray Serve did not start"
        yield f"http://127.0.0.1:{port}", cluster
        app.stdin.close()
        app.wait(timeout=60)


def write_long_talks(path: Path) -> None:
    """Write conversations of about a thousand tokens each, of which no two begin alike."""

    def said(number: int, turn: int) -> list[dict[str, str]]:
        asks = f"Conversation {number}, turn {turn}: " + "where is my order? " * 8
        return [{"role": "user", "content": asks}, {"role": "assistant", "content": "It is on its way to you. " * 8}]

    rows = [{"id": f"r{n}", "messages": [one for turn in range(12) for one in said(n, turn)]} for n in range(COUNT)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def on_ray(cluster: str, out: str) -> tuple[str, ...]:
    return ("--parts", out, *RAY, "--ray-address", cluster)


def cached_share(judge: str, cluster: str, out: str) -> float:
    """Judge on the cluster, and return the share of tokens that its replicas had already, as the merged run says."""
    asked = ("--metrics", ",".join(METRICS), "--judge", f"{judge}/v1#judge")
    done = viva("judge", "talks.jsonl", *asked, *on_ray(cluster, out))
    assert done.returncode == 0, done.stderr
    merged = viva("merge", out)
    with Store.open(".vivavoce/vivavoce.db") as store:
        run = next(iter(store.runs(1)))
        assert store.counts(run.id) == (COUNT, 0)
        assert [score.state for score in store.scores(store.grading(run.id).id)] == ["scored"] * COUNT * len(METRICS)
    said = re.search(r"\((\d+)% from the prompt cache\)", merged.stdout)
    assert said is not None, merged.stdout
    return int(said[1]) / 100


def prompts(judge: str) -> list[int]:
    """Return how many prompts each replica had."""
    with urllib.request.urlopen(f"{judge}/counted", timeout=10) as answer:
        return list(json.load(answer).values())


def test_a_router_that_looks_for_beginnings_keeps_a_conversation_on_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
    write_long_talks(Path("talks.jsonl"))
    with served(None) as (judge, cluster):
        with monkeypatch.context() as other:
            other.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
            refused = viva("judge", "talks.jsonl", "--metrics", "refusal", *on_ray(cluster, "refused"))
        assert refused.returncode == 2
        assert "a cluster that asks for a token takes the one in RAY_AUTH_TOKEN" in refused.stderr
        spread = cached_share(judge, cluster, "spread")
        assert sorted(prompts(judge))[0] > COUNT
    with served(ROUTER) as (judge, cluster):
        kept = cached_share(judge, cluster, "kept")
        assert sorted(prompts(judge))[0] > COUNT
    most = 1 - 1 / len(METRICS)
    assert spread + 0.05 < kept < most
