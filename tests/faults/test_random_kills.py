"""Killed with -9 at moments that a seed decides: no row is lost or doubled, and what was stored is not done again."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from vivavoce.store.store import Store

from .test_kill import normal, result, stored, viva

SAMPLES = 120
SUITE = """\
name: killed
dataset: d.jsonl
max_concurrent: 8
target: {kind: function, function: "bot.py:answer"}
graders:
  right: {kind: tool, function: contains}
gate: {kind: simple, metric_key: right, value: 0.5}
"""
BOT = """\
import asyncio, pathlib
async def answer(message):
    with pathlib.Path("asked.log").open("a") as log:
        log.write(message + "\\n")
    await asyncio.sleep(0.4)
    return "it is " + message[::-1]
"""


def write(folder: Path) -> Path:
    folder.mkdir()
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "bot.py").write_text(BOT)
    rows = [{"id": f"s{i}", "input": f"turn {i}", "ground_truth": f"{i}"[::-1]} for i in range(SAMPLES)]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def rows_of(store: Path) -> set[str]:
    """Return the ids of the samples that are stored."""
    if not store.exists():
        return set()
    with Store.open(str(store)) as opened:
        runs = opened.runs()
        keys = opened.outcomes(opened.grading(runs[0].id).id) if runs else ()
        return {outcome.attempt.key.sample_id for outcome in keys}


def check_kills(tmp_path: Path, seed: int, kills: int) -> None:
    """Kill a run several times, resume it, and compare it with one that was left alone."""
    moments = random.Random(seed)
    folder = write(tmp_path / "killed")
    store, known, stored_before_kill = folder / "s.db", set[str](), Counter[str]()
    for _ in range(kills):
        arguments = ("run", "--resume", "latest") if stored(store) else ("run", "suite.yaml")
        running = viva(folder, "s.db", *arguments)
        deadline = time.monotonic() + 30
        while running.poll() is None and stored(store) == len(known) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(moments.uniform(0, 1))
        if running.poll() is None:
            os.kill(running.pid, signal.SIGKILL)
        running.wait(timeout=30)
        rows = rows_of(store)
        assert known <= rows, f"seed {seed}: rows are lost: {known - rows}"
        known = rows
        stored_before_kill.update(rows)
    assert known, "nothing was stored before the last kill"
    counter = Counter((folder / "asked.log").read_text().splitlines())
    assert viva(folder, "s.db", "run", "--resume", "latest").wait(timeout=60) in (0, 1)
    again = Counter((folder / "asked.log").read_text().splitlines()) - counter
    assert not {sample for sample in known if again[f"turn {sample[1:]}"]}, f"seed {seed}: what is stored is done again"
    calm = write(tmp_path / "calm")
    assert viva(calm, "s.db", "run", "suite.yaml").wait(timeout=60) in (0, 1)
    assert [normal(part) for part in result(store)] == [normal(part) for part in result(calm / "s.db")]


@pytest.mark.parametrize("seed", [11])
def test_no_row_is_lost_doubled_or_done_again(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path, seed, kills=2)


@pytest.mark.live
@pytest.mark.parametrize("seed", range(20))
def test_no_row_is_lost_at_many_moments(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path, seed, kills=6)
