"""Killed in the middle of a run: what was finished is kept, and going on gives what an undisturbed run gives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from store.postgresql import server as postgresql_server
from vivavoce.store.store import Store

SUITE = """\
name: many
dataset: d.jsonl
max_concurrent: 32
target: {kind: function, function: "bot.py:answer"}
graders:
  right: {kind: tool, function: contains}
  exact: {kind: tool, function: exact_match}
reward: {kind: weighted, weights: {right: 1, exact: 1}}
gate: {kind: simple, metric_key: right, value: 0.5}
"""
BOT = """\
import asyncio
async def answer(message):
    await asyncio.sleep(0.04)
    number = int(message.split()[1])
    if number % 97 == 0:
        raise ValueError(f"no answer to {number}")
    return f"it is {number * number if number % 5 else number}"
"""
SAMPLES = 500


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)
    with (tmp_path / "d.jsonl").open("w") as out:
        for i in range(1, SAMPLES + 1):
            row: dict[str, Any] = {"id": f"s{i}", "input": [f"square {i}", f"square {i + 1}"]}
            out.write(json.dumps({**row, "ground_truth": [str(i * i), str((i + 1) ** 2)]}) + "\n")
    return tmp_path


def viva(folder: Path, store: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("viva")), *arguments, "--store", store]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stored(store: Path) -> int:
    if not store.exists():
        return 0
    with Store.open(str(store)) as opened:
        runs = opened.runs()
        return opened.counts(runs[0].id)[0] if runs else 0


def result(store: Path) -> tuple[Any, dict[str, Any]]:
    """Return the summary of the newest run, and everything it says of each sample but times and ids."""
    with Store.open(str(store)) as opened:
        run = opened.run("latest")
        grading = opened.grading(run.id)
        found: dict[str, Any] = {}
        for outcome in opened.outcomes(grading.id):
            row = outcome.model_dump(mode="json", exclude={"attempt": {"started_at"}})
            talk = row["attempt"]["trajectory"]
            del talk["seconds"], talk["session_id"]
            for turn in talk["turns"]:
                del turn["seconds"], turn["started_at"]
            assert outcome.attempt.key.sample_id not in found, "a sample is there twice"
            found[outcome.attempt.key.sample_id] = row
        assert grading.summary is not None
        summary = {name: value for name, value in grading.summary.items() if name != "latency"}
        return (run.status, grading.verdict, summary), found


def test_kill_9_and_resume_give_the_result_of_an_undisturbed_run(folder: Path) -> None:
    calm = viva(folder, "calm.db", "run", "suite.yaml")
    killed = viva(folder, "killed.db", "run", "suite.yaml")
    store = folder / "killed.db"
    for share in (0.2, 0.6):
        while stored(store) < SAMPLES * share:
            assert killed.poll() is None, "the run ended before it could be killed"
            time.sleep(0.05)
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.wait(timeout=30) == -signal.SIGKILL
        kept = stored(store)
        assert SAMPLES * share <= kept < SAMPLES
        killed = viva(folder, "killed.db", "run", "--resume", "latest")
    assert calm.wait(timeout=120) == killed.wait(timeout=120)
    summary, samples = result(store)
    calm_summary, calm_samples = result(folder / "calm.db")
    assert len(samples) == SAMPLES
    assert samples == calm_samples
    assert normal(summary) == normal(calm_summary)


def normal(summary: Any) -> Any:
    """Return a summary with its figures rounded: a sum depends on the order of its parts in the last digit."""
    return json.loads(json.dumps(summary), parse_float=lambda digits: round(float(digits), 9))


def processes_of(server: int) -> list[int]:
    """Return the processes of a PostgreSQL server, by the id of the first."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat")]
    fields = [(int(stat.split()[0]), int(stat.rpartition(")")[2].split()[1])) for stat in stats]
    return [server, *(process for process, parent in fields if parent == server)]


def test_the_second_interrupt_ends_a_run_whose_store_does_not_answer(folder: Path) -> None:
    with postgresql_server() as server, server.database() as address:
        with psycopg.connect(address) as connection:
            (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        frozen = processes_of(int(Path(data, "postmaster.pid").read_text().split()[0]))
        Store.open(address).close()
        process = viva(folder, address, "run", "suite.yaml", "--quiet")
        deadline = time.monotonic() + 120
        with Store.open(address) as store:
            while not store.runs() or not store.counts(store.runs()[0].id)[0]:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        frozen = processes_of(frozen[0])
        for number in frozen:
            os.kill(number, signal.SIGSTOP)
        try:
            time.sleep(0.5)
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                time.sleep(0.5)
            assert process.wait(120) == 130
        finally:
            process.kill()
            for number in frozen:
                os.kill(number, signal.SIGCONT)
        with Store.open(address) as store:
            assert store.runs()[0].status == "interrupted"
