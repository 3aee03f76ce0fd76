"""`viva serve jobs` on a store whose server is gone, and beside one that runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from server.live import serving
from vivavoce.cli.main import main
from vivavoce.client import Client
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.jobs import Claimant, JobRow
from vivavoce.store.store import Store

KEPT = "kept.db"


def viva(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--store", KEPT])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def add(store: Store, job_id: str, **more: Any) -> None:
    kept = JobRow(id=job_id, folder="/served", kind="suite", created_at=time.time(), request="{}", **more)
    assert store.jobs.add(kept) is None


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str | None]]:
    capsys.readouterr()
    assert viva("jobs", "list", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {row["id"]: (row["status"], row["detail"]) for row in rows}


def test_jobs_of_a_server_that_is_gone_are_listed_as_waiting_and_can_be_cancelled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Store.open(KEPT) as store:
        add(store, "job-waiting")
        add(store, "job-running")
        with store.jobs.present("server-1"):
            store.jobs.claim(Claimant("server-1", "/served", 3600), "job-running")
            store.jobs.save("job-running", 1, {"status": "running", "starts": 1})
            assert listed(capsys) == {"job-running": ("running", None), "job-waiting": ("waiting", None)}
        assert listed(capsys)["job-running"] == ("waiting", "its server has stopped")
    for job_id in ("job-waiting", "job-running"):
        assert viva("jobs", "cancel", job_id) == 0
        assert viva("jobs", "cancel", job_id) == 0
    assert listed(capsys) == dict.fromkeys(("job-running", "job-waiting"), ("interrupted", "cancelled"))
    with Store.open(KEPT) as store:
        kept = [store.jobs.get(job_id) for job_id in ("job-waiting", "job-running")]
    assert [(row.request, row.owner) for row in kept if row] == [(None, None)] * 2


def test_a_cancelled_job_is_left_to_the_server_that_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(KEPT) as store, store.jobs.present("server-1"):
        add(store, "job-running")
        store.jobs.claim(Claimant("server-1", "/served", 3600), "job-running")
        store.jobs.save("job-running", 1, {"status": "running"})
        assert viva("jobs", "cancel", "job-running") == 0
        assert "asked the server" in capsys.readouterr().err
        assert store.jobs.owned("server-1") == {"job-running": (1, 1)}


def test_the_list_of_a_store_is_that_of_its_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    with Store.open(KEPT) as store, serving(store, ServerPolicy(tmp_path)) as url, Client(url) as client:
        client.submit("evaluation", conversations=[{"id": "a", "messages": talk}], metrics=["refusal"]).wait()
        there = {record.id: (record.status, record.detail) for record in client.jobs()}
        assert listed(capsys) == there
    assert viva("jobs") == 0
    assert "1 of 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["cancel"], "viva serve jobs cancel ID"), (["list", "x"], "takes no job"), (["cancel", "job-x"], "job-x")],
)
def test_mistakes_are_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Store.open(KEPT).close()
    assert viva("jobs", *arguments) == 2
    assert said in capsys.readouterr().err
