"""What stops the work on parts: it is named and counted, and the same command goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import reset

RESOURCES = """\
import resource, sys
import numpy, scipy.stats, pyarrow.parquet
import vivavoce.features.parts.command, vivavoce.cli.judge, vivavoce.features.parts.work
from vivavoce.cli.main import main
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
limits = {"memory": (resource.RLIMIT_AS, now), "file": (resource.RLIMIT_FSIZE, 0)}
kind, first = limits[sys.argv[1]]
resource.setrlimit(kind, (first + int(sys.argv[2]), -1))
main(sys.argv[3:])
"""
SUITE = """\
name: watched
dataset: talks.jsonl
driver: replay
graders:
  safe: {{kind: metric, metric: safety, model: "{judge}", max_retries: 1}}
"""
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
"""Each of its threads would take memory of its own."""
LONG = "a word and another one " * 200


def write_talks(path: str, numbers: range, words: str = "Hello.") -> None:
    rows = [
        {"id": f"r{n}", "messages": [{"role": "user", "content": f"Hi {n}."}, {"role": "assistant", "content": words}]}
        for n in numbers
    ]
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def viva(*arguments: str, limit: tuple[str, int] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `viva`, with a limit in bytes on its memory beyond what it needs to start, or on the size of a file."""
    start = ["-m", "vivavoce.cli.main"] if limit is None else ["-c", RESOURCES, limit[0], str(limit[1])]
    command = [sys.executable, *start, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=ENVIRONMENT)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


def fine(body: dict[str, Any]) -> dict[str, Any]:
    del body
    return {"reasoning": "Fine.", "confidence": 1, "violations": []}


def test_an_endpoint_that_was_dead_is_asked_again_for_what_it_did_not_answer(server: LoopbackServer) -> None:
    write_talks("talks.jsonl", range(30))
    Path("suite.yaml").write_text(SUITE.format(judge=f"{server.base_url}#judge"), "utf-8")
    command = ("run", "suite.yaml", "--parts", "out", "--quiet")
    answered: list[int] = []

    def dies(body: dict[str, Any]) -> Any:
        answered.append(1)
        return fine(body) if len(answered) <= 12 else reset()

    server.answer = dies
    dead = viva(*command)
    assert dead.returncode == 3, dead.stderr
    assert re.search(r"safe +12 +18 ", dead.stdout), dead.stdout
    server.answer = fine
    server.requests.clear()
    done = viva(*command)
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 18
    with Store.open(".vivavoce/vivavoce.db") as store:
        (run,) = store.runs()
        assert store.counts(run.id) == (30, 0)
        assert [row.state for row in store.scores(store.grading(run.id).id)] == ["scored"] * 30


def test_a_limit_says_how_many_conversations_are_judged_and_kept(server: LoopbackServer) -> None:
    server.answer = fine
    write_talks("talks.jsonl", range(30))
    Path("suite.yaml").write_text(SUITE.format(judge=f"{server.base_url}#judge"), "utf-8")
    command = ("run", "suite.yaml", "--parts", "out", "--quiet")
    limited = viva(*command, "--max-calls", "10")
    assert limited.returncode == 3, limited.stderr
    assert "10 of 30 conversations judged and kept" in limited.stdout
    assert len(server.requests) == 10
    assert viva(*command).returncode == 0
    assert len(server.requests) == 30


@pytest.mark.parametrize("bytes_of_a_file", [100_000, 1_000_000])
def test_a_full_disk_ends_the_work_and_the_same_command_goes_on(bytes_of_a_file: int) -> None:
    """The smaller file is full when the rows of the part are written, the larger one when what came is stored."""
    write_talks("talks.jsonl", range(200), LONG)
    command = ("judge", "talks.jsonl", "--metrics", "refusal", "--parts", "out", "--quiet")
    full = viva(*command, limit=("file", bytes_of_a_file))
    assert full.returncode == 3, full.stderr
    assert "0 conversations in 0 of 1 part" in full.stdout
    (why,) = [line for line in full.stdout.splitlines() if line.startswith("stopped: ")]
    assert "out/.working" in why
    assert why.endswith("; the same command goes on")
    done = viva(*command)
    assert done.returncode == 0, done.stderr
    assert "200 conversations in 1 of 1 part" in done.stdout


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc")
def test_a_part_for_which_the_memory_is_too_small_is_named_and_tried_again() -> None:
    write_talks("talks.jsonl", range(1), "x" * 40_000_000)
    command = (
        "judge",
        "talks.jsonl",
        "--metrics",
        "{metric: response_length, threshold: 4}",
        "--parts",
        "out",
        "--quiet",
    )
    short = viva(*command, limit=("memory", 60_000_000))
    assert short.returncode == 3, short.stderr
    assert "talks.jsonl, rows 1 to 1: there is not enough memory for it" in short.stdout
    assert "what is broken is tried again by the same command" in short.stdout
    done = viva(*command)
    assert done.returncode == 0, done.stderr
    assert "1 conversation in 1 of 1 part" in done.stdout
