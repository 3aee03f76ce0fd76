"""Every reader of a store gives a run the same status, at the moment in which its process ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sqlalchemy import select

from server.live import get, serving
from vivavoce.cli.main import main
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.database.schema import runs
from vivavoce.store.store import Store

STORE = "kept.db"
SUITE = """\
name: slow
dataset: {rows: [{id: a, input: hello, ground_truth: hi}, {id: b, input: wait, ground_truth: hi}]}
target: {kind: function, function: "bot.py:reply"}
graders:
  said: {kind: tool, function: contains, extractor: last_assistant}
max_concurrent: 1
"""
BOT = """\
import asyncio
async def reply(message):
    if message == "wait":
        open("waiting", "w").close()
        await asyncio.sleep(3600)
    return "hi"
"""


def viva(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--store", STORE])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def from_store(store: Store) -> dict[str, str]:
    run = store.run("latest")
    return {
        "run": run.status,
        "runs": store.runs()[0].status,
        "list": store.browse.runs().runs[0].status,
        "named": store.browse.named_runs([run.id])[0].status,
        "series": store.series.of("slow").runs[0].run.status,
        "recent": store.series.recent()[0][0].runs[0].run.status,
        "graded": store.series.graded_runs([run.id])[0].run.status,
        **{
            f"filter {status}": status for status in ("running", "interrupted") if store.browse.runs(status=status).runs
        },
    }


def from_server(url: str) -> dict[str, str]:
    api = f"{url}/api/v1/runs"
    found = {"run": get(f"{api}/latest").json()["run"]["status"], "list": get(api).json()["runs"][0]["status"]}
    for status in ("running", "interrupted"):
        if get(f"{api}?{urlencode({'status': status})}").json()["runs"]:
            found[f"filter {status}"] = status
    listed, shown = get(f"{url}/").text, get(f"{url}/runs/latest").text
    found["list page"] = next(
        word for word in ("Running", "Interrupted") if f" {word}<" in listed or f">{word}<" in listed
    )
    found["page"] = "interrupted" if "viva run --resume" in shown else "running" if "Running" in shown else "unknown"
    return {f"served {name}": status.lower() for name, status in found.items()}


def from_command(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    viva("runs", "--json")
    found = {"command": json.loads(capsys.readouterr().out)["status"]}
    viva("runs")
    found["table"] = next(word for word in capsys.readouterr().out.split() if word in ("running", "interrupted"))
    return found


def soon(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_run_is_running_while_its_process_lives_and_interrupted_as_soon_as_it_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text(BOT)
    command = [sys.executable, "-m", "vivavoce.cli.main", "run", "suite.yaml", "-q", "--store", STORE]
    with (
        subprocess.Popen(command, cwd=tmp_path) as process,
        Store.open(STORE) as store,
        serving(store, ServerPolicy(tmp_path)) as url,
    ):
        soon((tmp_path / "waiting").exists)
        before = {**from_store(store), **from_server(url), **from_command(capsys)}
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = {**from_store(store), **from_server(url), **from_command(capsys)}
        capsys.readouterr()
        viva("show")
        assert "interrupted" in "".join(capsys.readouterr())
        with store.database.connected() as connection:
            assert connection.execute(select(runs.c.status)).scalar_one() == "running"
        collected = store.maintenance.collect(keep_last=0)
        assert (collected.runs, collected.interrupted) == ((), (store.run("latest").id,))
    assert set(before.values()) == {"running"}
    assert set(after.values()) == {"interrupted"}
    assert {name.replace("running", "interrupted") for name in before} == set(after)


def test_a_run_is_deleted_after_a_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("wait", "go"))
    (tmp_path / "bot.py").write_text(BOT)
    assert viva("run", "suite.yaml", "-q") == 0
    with Store.open(STORE) as store:
        run = store.run("latest").id
    assert viva("runs", "delete", run[-6:]) == 2
    assert f"Delete {run} (finished, suite slow, 2 conversations)" in capsys.readouterr().err
    assert viva("runs", "delete") == 2
    assert viva("runs", "list", run) == 2
    assert viva("runs", "--yes") == 2
    with Store.open(STORE) as store:
        with store.claimed(run):
            assert viva("runs", "delete", run, "--yes") == 2
        assert [one.id for one in store.runs()] == [run]
        assert viva("runs", "delete", run, "--yes") == 0
        assert store.runs() == []
        assert [entry.action for entry in store.audit.entries(None, 10).entries] == ["run.delete"]
