"""What happens to a store while it is served: locked, full, moved away, changed by others, restarted."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.api.test_jobs import ended, submit
from server.live import Reply, get, send, serving
from server.pages.cases import everywhere, keep, outcome, turn
from store.database.test_upgrade import execute
from store.postgresql import Server, idle_server
from store.postgresql import server as postgresql_server
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.database.schema import HEAD
from vivavoce.store.store import Store

from .servers import soon
from .test_server import many

PAGES = ("/", "/runs/run-1", "/runs/run-1/samples/one")
DATA = ("/api/v1/runs", "/api/v1/runs/run-1/samples", "/api/v1/runs/run-1/samples/one/0", "/api/v1/health")


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with postgresql_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where no store is yet: once a file, once a database."""
    if request.param == "sqlite":
        yield str(tmp_path / "kept.db")
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.database() as found:
        yield found


@contextmanager
def served(address: str, folder: Path) -> Generator[str]:
    """Serve a new store with a run in it."""
    with Store.open(address) as store:
        keep(store, [outcome("one", [turn(0, "Hello?", "Hello!")])])
        with serving(store, ServerPolicy(folder)) as url:
            yield url


def all_of(url: str) -> list[Reply]:
    return [get(url + path) for path in (*PAGES, *DATA)]


def told(url: str, said: str) -> None:
    """Check that every page and every answer says what is the matter."""
    for path in PAGES:
        reply = get(url + path)
        assert (reply.status, said in reply.text) == (503, True), (path, reply.text)
        assert "default-src 'none'" in reply.headers["content-security-policy"]
    for path in DATA:
        reply = get(url + path)
        assert (reply.status, list(reply.json())) == (503, ["detail", "code"])
        assert said in reply.json()["detail"]


def fine(url: str) -> None:
    """Check that everything is answered as it should be."""
    assert {reply.status for reply in all_of(url)} == {200}


def test_a_store_that_another_process_brings_to_a_newer_schema_is_served_no_more(address: str, tmp_path: Path) -> None:
    with served(address, tmp_path) as url:
        fine(url)
        execute(address, "UPDATE alembic_version SET version_num = '9999'")
        told(url, "newer vivavoce")
        refused = send("POST", f"{url}/api/v1/jobs", many("a"))
        assert (refused.status, "newer vivavoce" in refused.text) == (503, True)
        execute(address, f"UPDATE alembic_version SET version_num = '{HEAD}'")
        fine(url)
        assert len(get(f"{url}/api/v1/runs").json()["runs"]) == 1


def test_a_server_does_not_begin_on_a_newer_schema(address: str) -> None:
    Store.open(address).close()
    execute(address, "UPDATE alembic_version SET version_num = '9999'")
    command = [sys.executable, "-m", "vivavoce.cli.main", "serve", "--port", "0", "--store", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "newer vivavoce" in done.stderr, "Traceback" in done.stderr) == (3, True, False)


def test_tables_that_go_while_they_are_served_are_said_to_be_gone(address: str, tmp_path: Path) -> None:
    with served(address, tmp_path) as url:
        execute(address, "DROP TABLE alembic_version")
        told(url, "its tables are gone")


def test_a_file_that_is_moved_away_is_said_to_be_gone_and_served_again_when_it_is_back(tmp_path: Path) -> None:
    path, away = tmp_path / "kept.db", tmp_path / "away.db"
    with served(str(path), tmp_path) as url:
        fine(url)
        path.rename(away)
        told(url, "deleted or moved")
        assert not path.exists()
        assert send("POST", f"{url}/api/v1/jobs", many("a")).status == 503
        away.rename(path)
        fine(url)


def test_another_file_in_the_place_of_the_store_is_not_served_for_it(tmp_path: Path) -> None:
    path, other = tmp_path / "kept.db", tmp_path / "other.db"
    with served(str(path), tmp_path) as url:
        fine(url)
        Store.open(str(other)).close()
        os.replace(other, path)
        told(url, "another file")


@pytest.mark.parametrize("size", [0, 1000, 20_000])
def test_a_file_that_is_cut_short_is_an_error_and_no_wrong_answer(tmp_path: Path, size: int) -> None:
    path = tmp_path / "kept.db"
    with served(str(path), tmp_path) as url:
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        os.truncate(path, size)
        replies = [get(url + path) for path in (*PAGES[1:], *DATA[1:3])]
    assert {reply.status for reply in replies} == {503}
    assert not [reply for reply in replies if "Traceback" in reply.text]


def test_a_locked_file_is_read_and_a_write_says_that_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.store.database.sqlite.LOCK_WAIT", 0.2)
    path = str(tmp_path / "kept.db")
    with served(path, tmp_path) as url:
        assert get(f"{url}/api/v1/search?q=hello").status == 200
        keep_more = many("a")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            fine(url)
            assert get(f"{url}/api/v1/search?q=hello").status == 200
            refused = send("POST", f"{url}/api/v1/jobs", keep_more)
            assert (refused.status, "another process held it" in refused.text) == (503, True)
            told_of = send("DELETE", f"{url}/api/v1/runs/run-1")
            assert (told_of.status, "locked" in told_of.json()["detail"]) == (503, True)
        assert ended(url, submit(url, keep_more).id).status == "finished"
        fine(url)


SHARED_PAGES = (
    *("/", "/runs/odd", "/runs/odd/clusters", "/compare?a=odd&b=run-1", "/search?q=ask"),
    *("/api/v1/runs", "/api/v1/runs/odd", "/api/v1/runs/odd/samples", "/api/v1/runs/odd/scores"),
    *("/api/v1/runs/odd/groups?by=metadata.kind", "/api/v1/comparisons?a=odd&b=run-1"),
    *(f"/api/v1/runs/odd/export?format={name}" for name in ("json", "jsonl", "html", "junit", "csv", "markdown")),
)


@pytest.mark.parametrize("text", ["a\ud83db", "a\0b", "\udc00"])
def test_pages_of_a_run_with_odd_characters_everywhere_are_shown(address: str, tmp_path: Path, text: str) -> None:
    with Store.open(address) as store:
        odd = everywhere(text)
        row = json.loads(odd.attempt.sample) | {"metadata": {"kind": text, text: text}}
        odd = odd.model_copy(update={"attempt": odd.attempt.model_copy(update={"sample": json.dumps(row)})})
        keep(store, [odd, outcome("one", [turn(0, "Hello?", "Hello!")], position=1)], "odd")
        keep(store, [outcome("one", [turn(0, "Hello?", "Hello!")])])
        with serving(store, ServerPolicy(tmp_path)) as url:
            statuses = {path: get(url + path).status for path in SHARED_PAGES}
    assert {path: status for path, status in statuses.items() if status != 200} == {}


def test_many_writers_who_wait_for_a_locked_file_leave_threads_to_readers(tmp_path: Path) -> None:
    path = str(tmp_path / "kept.db")
    with served(path, tmp_path) as url, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(30) as pool:
            notes = [
                pool.submit(send, "PATCH", f"{url}/api/v1/runs/run-1", {"notes": f"note {number}"})
                for number in range(30)
            ]
            fine(url)
            assert not any(note.done() for note in notes)
            other.execute("ROLLBACK")
            assert {note.result().status for note in notes} == {200}


def test_a_server_of_a_frozen_database_says_so_and_goes_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.store.database.server_connection.QUIET_SECONDS", 0.3)
    monkeypatch.setattr("vivavoce.store.database.server_connection.PROBE_SECONDS", 2)
    monkeypatch.setattr("vivavoce.store.database.postgresql.CONNECT_WAIT", 2)
    with postgresql_server() as running, running.database() as address, served(address, tmp_path) as url:
        fine(url)
        assert get(f"{url}/readyz").status == 200
        with running.frozen():
            with ThreadPoolExecutor() as pool:
                replies = list(pool.map(get, (f"{url}/", f"{url}/api/v1/runs")))
            assert [(reply.status, "the server does not answer" in reply.text) for reply in replies] == [
                (503, True)
            ] * 2
            unready = get(f"{url}/readyz")
            assert (unready.status, unready.text) == (503, "the store is unavailable\n")
        fine(url)
        soon(lambda: get(f"{url}/readyz").status == 200)


SERVE = """
import resource, sys
from vivavoce.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = ["viva", "serve", "--port", "0"]
main()
"""
"""A server none of whose files may grow beyond a size, as on a disk that is full."""


@contextmanager
def on_a_full_disk(folder: Path, size: int) -> Generator[str]:
    command = [sys.executable, "-c", SERVE, str(size)]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=_plain()) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert " at http" in line, line + process.stderr.read()
            yield line.partition(" at ")[2].split()[0].rstrip("/")
        finally:
            process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def _plain() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "500", "NO_COLOR": "1"}


def conversations(count: int, said: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": said}
    talks = [{"id": f"t{number}", "messages": [{"role": "user", "content": said}, answer]} for number in range(count)]
    return {"kind": "evaluation", "metrics": ["refusal"], "conversations": talks}


def test_on_a_full_disk_a_write_says_so_and_reading_goes_on_and_nothing_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / ".vivavoce" / "vivavoce.db"
    with Store.open(str(path)) as store:
        keep(store, [outcome("one", [turn(0, "Hello?", "Hello!")])])
    jobs = path.parent / "jobs"
    with on_a_full_disk(tmp_path, 380_000) as url:
        fine(url)
        refused = send("POST", f"{url}/api/v1/jobs", conversations(400, "x" * 1000))
        assert (refused.status, "cannot be saved: File too large" in refused.text) == (503, True)
        wrong = {**conversations(1, "x"), "metrics": ["turn_cuont"]}
        assert send("POST", f"{url}/api/v1/jobs", wrong).status == 422
        assert list(jobs.iterdir()) == []
        record = ended(url, submit(url, conversations(600, "x")).id)
        assert (record.status, "disk" in (record.detail or "")) == ("interrupted", True), record
        fine(url)
    assert record.run is not None
    with Store.open(str(path)) as store:
        kept, written = store.counts(record.run)[0], store.jobs.get(record.id)
        assert kept < 600
    assert written is not None
    with Store.open(str(path)) as store, serving(store, ServerPolicy(tmp_path)) as url:
        fine(url)
        if written.status == "interrupted":  # there was room to write that down, so somebody has to continue it
            assert ended(url, record.id).status == "interrupted"
            again = ended(url, submit(url, {"resume": record.run}).id)
        else:
            again = ended(url, record.id)
        assert (again.status, store.counts(record.run)[0]) == ("finished", 600)


def test_a_database_whose_server_is_restarted_is_served_again(tmp_path: Path) -> None:
    with idle_server() as made:
        with made.up():
            made.run("CREATE DATABASE kept")
            store = Store.open(made.address("kept"))
            keep(store, [outcome("one", [turn(0, "Hello?", "Hello!")])])
            serves = serving(store, ServerPolicy(tmp_path))
            url = serves.__enter__()
            fine(url)
        try:
            told(url, "is the server running")
            with made.up():
                fine(url)
                assert ended(url, submit(url, many("a")).id).status == "finished"
                made.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'kept'")
                fine(url)
        finally:
            serves.__exit__(None, None, None)
            store.close()
