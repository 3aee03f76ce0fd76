"""Several servers on one store: whatever happens to one of them, the others finish its jobs, and nothing twice."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from stage import verdict
from store.postgresql import Server, server
from vivavoce.client import Client
from vivavoce.server.job_record import JobRecord
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .servers import LEASING, ServerProcess, server_process, soon, stand_still

ROWS = 6
LEASE = 2.0
SUITE = """\
name: shared
dataset: {{rows: [{rows}]}}
target: {{kind: http, url: "{url}/bot", body: {{said: "{{{{ message }}}}"}}, reply: said}}
graders:
  goal: {{kind: metric, metric: goal_achievement, model: "{url}/v1#judge"}}
max_concurrent: 1
"""
TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "shared.db")
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.database() as address:
        yield address


class Stage:
    """The bot and the judge, who answer while `open` is set; the judge is asked about each word at most once."""

    def __init__(self) -> None:
        self.open, self.judged = Event(), list[str]()
        self.open.set()

    def __call__(self, body: dict[str, Any]) -> Any:
        self.open.wait(60)
        if str(body.get("model")).startswith("judge"):
            self.judged += re.findall(r"Reach (W\dx)", json.dumps(body["messages"]))[:1]
            return verdict(True)
        return {"said": f"here is {body['said']}"}


@contextmanager
def serving(folder: Path, address: str, lease: float = 30, workers: int = 1) -> Generator[tuple[ServerProcess, Client]]:
    with server_process(folder, LEASING, address, str(lease), str(workers)) as process, Client(process.url) as client:
        yield process, client


def write(folder: Path, url: str) -> None:
    rows = ", ".join(f'{{id: w{n}, input: "I want W{n}x", goal: "Reach W{n}x"}}' for n in range(ROWS))
    (folder / "shared.yaml").write_text(SUITE.format(rows=rows, url=url))


def graded(store: Store, record: JobRecord) -> int:
    row = store.jobs.get(record.id)
    return 0 if row is None or row.run is None else store.counts(row.run)[0]


def complete(store: Store, record: JobRecord) -> None:
    assert (record.status, record.detail, record.done, record.errors) == ("finished", None, ROWS, 0)
    (run,) = store.runs()
    (grading,) = store.gradings(run.id)
    assert run.status == "finished"
    assert sorted(attempt.key.sample_id for attempt in store.attempts(run.id)) == [f"w{n}" for n in range(ROWS)]
    assert [row.value for row in store.scores(grading.id)] == [1.0] * ROWS


def test_a_job_of_a_server_that_is_killed_is_finished_by_another(tmp_path: Path, address: str) -> None:
    stage = Stage()
    with LoopbackServer(stage) as models, Store.open(address) as store:
        write(tmp_path, models.url)
        models.delay = 0.1
        with serving(tmp_path, address) as (one, client):
            record = client.submit("suite", suite="shared.yaml").record
            soon(lambda: graded(store, record) >= 2)
            with serving(tmp_path, address) as (_, other):
                one.kill()
                judged = len(stage.judged)
                before = set(stage.judged)
                stored = {key.sample_id.upper() + "x" for key in store.done(store.runs()[0].id)}
                complete(store, other.job(record.id).wait())
        rest = {f"W{n}x" for n in range(ROWS)} - stored
        assert len(stored) >= 2
        kept = rest - set(stage.judged[judged:])  # answered before the kill, and not yet stored as a conversation
        assert set(stage.judged[judged:]) <= rest
        assert kept <= before
        assert len(kept) <= 1
        assert len(stage.judged[judged:]) <= len(rest) + 1  # what was on its way when the server was killed


def test_a_server_that_stood_still_writes_nothing_once_another_has_its_job(tmp_path: Path, address: str) -> None:
    stage = Stage()
    with LoopbackServer(stage) as models, Store.open(address) as store:
        write(tmp_path, models.url)
        with serving(tmp_path, address, LEASE) as (one, before):
            stage.open.clear()
            record = before.submit("suite", suite="shared.yaml").record
            soon(lambda: models.requests)
            with serving(tmp_path, address, LEASE) as (_, other):
                stand_still(one.pid, address)
                soon(lambda: getattr(store.jobs.get(record.id), "fence", 0) == 2)
                stage.open.set()
                complete(store, other.job(record.id).wait())
            stored = rows(store)
            os.kill(one.pid, signal.SIGCONT)
            with Client(one.url) as client:  # the server ends connections on which nothing came for so long
                last = client.submit("evaluation", conversations=[{"id": "x", "messages": TALK}], metrics=["refusal"])
                assert last.wait().status == "finished"
                assert client.job(record.id).record.done == ROWS
                store.maintenance.delete_run(str(last.record.run), "test")
                assert rows(store) == stored
                complete(store, client.job(record.id).record)


def rows(store: Store) -> dict[str, int]:
    return {name: number for name, number in store.maintenance.contents().rows.items() if name != "replies"}


def test_fifty_jobs_of_four_workers_are_each_run_once_and_a_dead_worker_is_replaced(
    tmp_path: Path, address: str
) -> None:
    with serving(tmp_path, address, workers=4) as (parent, client):
        rows = [{"id": "x", "messages": TALK}]
        made = [client.submit("evaluation", conversations=rows, metrics=["refusal"]) for _ in range(50)]
        before = parent.workers()
        os.kill(before[0], signal.SIGKILL)
        soon(lambda: len(set(parent.workers()) - {before[0]}) == 4)
        ended = [client.job(one.id).wait() for one in made]
        os.kill(parent.pid, signal.SIGTERM)
        assert parent.call.wait(60) == -signal.SIGTERM
    assert {(one.status, one.done) for one in ended} == {("finished", 1)}
    with Store.open(address) as store:
        assert {run.id for run in store.runs(1000)} == {one.run for one in ended}
        assert len({one.run for one in ended}) == 50
        assert [store.counts(run.id) for run in store.runs(1000)] == [(1, 0)] * 50
