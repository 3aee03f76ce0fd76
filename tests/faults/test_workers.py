"""What people do at a server with several workers, each request answered by another one."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from sqlalchemy import select

from server.live import Reply, get, send
from server.pages.cases import keep, outcome, turn
from store.postgresql import Server, server
from vivavoce.records.score import Score
from vivavoce.store.database.schema import rate_limits
from vivavoce.store.store import Store

from .servers import COMMAND, ServerProcess, server_process, soon, stand_still

FORM = {"content-type": "application/x-www-form-urlencoded"}
SECRET = "a-secret-of-the-environment"
WRITES, WRITES_A_SECOND, GUESSES, GUESSES_A_SECOND = 100, 10, 10, 10 / 60
"""The limits that the guide to the server states."""


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


class Workers:
    """A server with two workers, of which one stands still, so that the other one answers."""

    def __init__(self, process: ServerProcess, address: str) -> None:
        self.url, self._address = process.url, address
        soon(lambda: len(process.workers()) == 2)
        self._answers, self._rests = process.workers()
        stand_still(self._rests, address)

    def swap(self) -> None:
        stand_still(self._answers, self._address)
        self._answers, self._rests = self._rests, self._answers
        os.kill(self._answers, signal.SIGCONT)


@contextmanager
def two_workers(folder: Path, address: str, **environment: str) -> Generator[Workers]:
    arguments = ("serve", "--workers", "2", "--port", "0", "--store", address)
    with server_process(folder, COMMAND, *arguments, **environment) as process:
        yield Workers(process, address)


def save(there: str, verdict: str) -> Reply:
    key = re.search(r'name="form_key" value="([0-9a-f]+)"', get(there).text)
    assert key is not None
    return send("POST", there, urlencode({"form_key": key[1], "verdict": verdict, "action": "save"}).encode(), FORM)


def test_each_conversation_of_a_queue_is_labelled_at_another_worker(tmp_path: Path, address: str) -> None:
    talks = [outcome(f"s{n}", [turn(0, "Hi", f"Hello {n}")], {"goal": Score(value=1.0)}, position=n) for n in range(4)]
    with Store.open(address) as store:
        keep(store, talks)
        with two_workers(tmp_path, address) as workers:
            begun = get(f"{workers.url}/label?{urlencode({'run': 'run-1', 'grader': 'goal', 'blind': 1, 'seed': 3})}")
            there, seen = begun.headers["location"], list[str]()
            while not there.endswith("/end"):
                workers.swap()
                page = get(workers.url + there)
                assert page.status == 200, page.text
                seen += re.findall(r"Hello \d", page.text)[:1]
                workers.swap()
                there = save(workers.url + there, "pass").headers["location"]
            assert "All 4 labelled" in re.sub(r"<[^>]+>", "", get(workers.url + there).text)
        assert sorted(seen) == [f"Hello {n}" for n in range(4)]
        assert sorted(one.sample_id for one in store.labels.all("run-1")) == ["s0", "s1", "s2", "s3"]


class Asker:
    """Sends requests, and knows how many were let through, since when, and when the last one was."""

    def __init__(self, workers: Workers) -> None:
        self.workers, self.granted, self.began, self.last = workers, 0, time.time(), 0.0

    def write(self) -> bool:
        answer = send("POST", f"{self.workers.url}/api/v1/jobs", {}, {"authorization": f"Bearer {SECRET}"})
        return self._heard(answer, 422)

    def guess(self) -> bool:
        answer = send("GET", f"{self.workers.url}/api/v1/runs", headers={"authorization": f"Bearer {time.time()}"})
        return self._heard(answer, 401)

    def allowed(self, burst: float, per_second: float) -> float:
        return burst + per_second * (time.time() - self.began)

    def _heard(self, answer: Reply, otherwise: int) -> bool:
        assert answer.status in (429, otherwise), answer.text
        if answer.status == 429:
            return False
        self.granted, self.last = self.granted + 1, time.time()
        return True


def test_two_workers_let_a_client_through_as_often_as_one(tmp_path: Path, address: str) -> None:
    with two_workers(tmp_path, address, VIVAVOCE_TOKEN=SECRET) as workers, Store.open(address) as store:
        asker = Asker(workers)
        while asker.write():
            assert asker.granted <= asker.allowed(WRITES, WRITES_A_SECOND)
        assert asker.granted >= WRITES
        soon(lambda: told(store) > asker.last)
        workers.swap()
        asker.write()  # it hears of the first worker when it tells the store of its own: one more is the tolerance
        soon(lambda: told(store) > asker.last)
        while asker.write():
            assert asker.granted <= asker.allowed(WRITES, WRITES_A_SECOND) + 1
        soon(asker.write)  # what was too much is taken off before another one is granted
        assert asker.granted <= asker.allowed(WRITES, WRITES_A_SECOND) + 1


def test_wrong_tokens_are_counted_by_two_workers_together(tmp_path: Path, address: str) -> None:
    with two_workers(tmp_path, address, VIVAVOCE_TOKEN=SECRET) as workers:
        asker = Asker(workers)
        while asker.guess():
            workers.swap()
        workers.swap()
        while asker.guess():
            pass
        assert asker.granted >= GUESSES - 1  # the last one is tried, too, and the answer says that there were too many
        assert asker.granted <= asker.allowed(GUESSES, GUESSES_A_SECOND) + 1


def told(store: Store) -> float:
    """Return when a worker told the store for the last time what was written."""
    query = select(rate_limits.c.at).where(rate_limits.c.client.startswith("write "))
    with store.database.connected() as connection:
        return max(connection.execute(query).scalars(), default=0.0)
