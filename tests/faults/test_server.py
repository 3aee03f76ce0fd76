"""What people and programs do to a server: they leave, they wait, they look at what is deleted meanwhile."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from server.api.test_jobs import Gate, ended, slow_suite, stream, submit
from server.live import get, running, send, serving
from server.pages.cases import keep, outcome, turn
from vivavoce.records.run import Outcome
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.job import Job
from vivavoce.server.listening import listening
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.state import server_of
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

TALK = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello!"}]
LARGE = "x" * 200_000


def many(job: str, count: int = 30) -> dict[str, Any]:
    """Return a job that measures conversations."""
    talks = [{"id": f"{job}-{number}", "messages": TALK} for number in range(count)]
    return {"kind": "evaluation", "metrics": ["refusal"], "conversations": talks}


def large(count: int) -> list[Outcome]:
    return [outcome(f"s{number}", [turn(0, LARGE)], position=number) for number in range(count)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a run of 60 samples in a folder of its own."""
    with Store.open(str(tmp_path / "kept.db")) as store:
        keep(store, [outcome(f"s{number}", [turn(0, "Hello?")], position=number) for number in range(60)])
        yield store


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Iterator[tuple[FastAPI, str]]:
    """An application that is served, and its address."""
    bound = listening("127.0.0.1", 0)
    host = f"127.0.0.1:{bound.getsockname()[1]}"
    made = create_app(store, Access.of({host}), ServerPolicy(tmp_path))
    with running(made, bound):
        yield made, f"http://{host}"


@pytest.fixture
def url(app: tuple[FastAPI, str]) -> str:
    return app[1]


def test_a_run_that_is_deleted_while_it_is_looked_at_is_said_to_be_gone(url: str, store: Store) -> None:
    page = get(f"{url}/runs/run-1").text
    following = page.partition('href="/runs/run-1?after=')[2].partition('"')[0]
    samples = get(f"{url}/api/v1/runs/run-1/samples?limit=5").json()
    assert following
    store.maintenance.collect(keep_last=0)
    for path in ("/runs/run-1", f"/runs/run-1?after={following}", "/runs/run-1/samples/s3?trial=1"):
        reply = get(url + path)
        assert (reply.status, "Not found" in reply.text, 'href="/"' in reply.text) == (404, True, True)
    for path in (
        f"samples?after={samples['next']}",
        "samples/s3/0",
        "samples/s3/0/turns",
        "scores",
        "export",
        "errors",
    ):
        reply = get(f"{url}/api/v1/runs/run-1/{path}")
        assert (reply.status, list(reply.json())[:2]) == (404, ["detail", "code"]), path
    assert get(url).status == 200


def test_the_list_of_runs_goes_on_where_a_run_was_deleted(url: str, store: Store) -> None:
    for number in range(4):
        keep(store, [outcome()], f"new-{number}", at=2000.0 + number)
    first = get(f"{url}/api/v1/runs?limit=2").json()
    store.maintenance.collect(before=2012.5)  # the one that the place is after, and all that are older
    rest = get(f"{url}/api/v1/runs?after={first['next']}").json()
    assert ([one["id"] for one in first["runs"]], rest["runs"]) == (["new-3", "new-2"], [])


def test_whoever_follows_a_job_hears_its_end_though_its_run_is_deleted(url: str, store: Store, tmp_path: Path) -> None:
    gate = Gate()
    with LoopbackServer(gate) as bot:
        record = submit(url, slow_suite(tmp_path, bot, rows=3))
        news = stream(url, record.id)
        assert next(news).kind == "started"
        gate.asked.wait(30)
        run = next(one.id for one in store.runs() if one.status == "running")
        with store.database.writing() as connection:
            for table in ("gradings", "runs"):
                connection.exec_driver_sql(
                    f"DELETE FROM {table} WHERE {'run_id' if table[0] == 'g' else 'id'} = '{run}'"
                )
        gate.open.set()
        last = list(news)[-1]
    assert (last.kind, last.job and last.job.status) == ("ended", "interrupted")
    assert last.job is not None
    assert "not in the store" in (last.job.detail or "")
    assert get(f"{url}/runs/{run}").status == 404
    assert ended(url, record.id) == last.job


def leave(url: str, path: str, enough: int) -> None:
    """Ask for something, read the beginning of the answer, and break the connection."""
    host = urlsplit(url)
    with socket.create_connection((host.hostname or "", host.port or 0), timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host.netloc}\r\n\r\n".encode())
        held = 0
        while held < enough:
            held += len(connection.recv(4096))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def soon(holds: Callable[[], bool]) -> bool:
    """Wait until something holds, half a minute at most."""
    for _ in range(3000):
        if holds():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("path", ["/api/v1/runs/large/export?format=jsonl", "/runs/large/samples/s0", "/"])
def test_whoever_leaves_in_the_middle_of_an_answer_leaves_no_trace(
    app: tuple[FastAPI, str], store: Store, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    keep(store, large(20), "large", at=2000.0)
    made, url = app
    for _ in range(10):
        leave(url, path, 1000)
    assert soon(lambda: server_of(made).exports.used == 0)
    assert get(f"{url}/api/v1/health").status == 200
    assert capfd.readouterr().err == ""


def test_whoever_leaves_in_the_middle_of_news_is_forgotten(
    app: tuple[FastAPI, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = Gate()
    made, url = app
    with LoopbackServer(gate) as bot:
        record = submit(url, slow_suite(tmp_path, bot, rows=1))
        gate.asked.wait(30)
        for _ in range(5):
            leave(url, f"/api/v1/jobs/{record.id}/events", 300)
        job = server_of(made).jobs.get(record.id)
        assert isinstance(job, Job)
        followers = job._followers  # pyright: ignore[reportPrivateUsage]
        assert soon(lambda: not followers)
        gate.open.set()
        assert ended(url, record.id).status == "finished"
    assert capfd.readouterr().err == ""


def test_requests_that_never_end_hold_up_nobody(url: str) -> None:
    host = urlsplit(url)
    beginnings = (b"", b"G", b"GET / HTTP/1.1\r\nHo", b"POST /api/v1/jobs HTTP/1.1\r\nHost: " + host.netloc.encode())
    body = b"\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"
    held = [socket.create_connection((host.hostname or "", host.port or 0)) for _ in range(200)]
    for number, connection in enumerate(held):
        start = beginnings[number % 4]
        connection.sendall(start + body if start.startswith(b"POST") else start)
    for path in ("/", "/runs/run-1", "/api/v1/runs", "/api/v1/jobs"):
        assert get(url + path).status == 200
    for connection in held:
        connection.close()
    assert get(f"{url}/api/v1/jobs").json()["jobs"] == []


def test_two_servers_on_one_file_both_read_and_write_and_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    replies: dict[str, list[str]] = {}

    def work(url: str, name: str) -> None:
        jobs = [submit(url, many(f"{name}{number}")) for number in range(4)]
        seen = [
            get(f"{url}{path}").status for _ in range(20) for path in ("/", "/api/v1/runs", "/api/v1/search?q=hello")
        ]
        replies[name] = [ended(url, job.id).status for job in jobs] + [str(status) for status in set(seen)]

    with (
        Store.open(path) as first,
        Store.open(path) as second,
        serving(first, ServerPolicy(tmp_path / "one")) as one,
        serving(second, ServerPolicy(tmp_path / "other")) as other,
    ):
        assert (get(one).status, get(other).status) == (200, 200)  # FastAPI builds routes then, in one thread at a time
        threads = [threading.Thread(target=work, args=given) for given in ((one, "a"), (other, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert replies == {name: ["finished"] * 4 + ["200"] for name in ("a", "b")}
        assert get(f"{one}/api/v1/runs").json() == get(f"{other}/api/v1/runs").json()
        assert [first.counts(run.id) for run in second.runs()] == [(30, 0)] * 8


def test_a_body_that_breaks_off_begins_nothing(url: str) -> None:
    host = urlsplit(url)
    body = json.dumps(many("x")).encode()
    head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Type: application/json\r\n"
    for sent in (0, 1, len(body) // 2, len(body) - 1):
        with socket.create_connection((host.hostname or "", host.port or 0)) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:sent])
    assert send("POST", f"{url}/api/v1/jobs", body).status == 202
    assert len(get(f"{url}/api/v1/jobs").json()["jobs"]) == 1
