"""The receiver of traces is killed in the middle: what was acknowledged is judged, and each conversation once."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from features.watch.traffic import export, turn
from forked import kill, program
from store.postgresql import Server, server
from vivavoce.store.store import Store

TURNS, AT_ONCE = 5, 100


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the store is: once a file, once a database."""
    if request.param == "sqlite":
        yield str(tmp_path / "s.db")
        return
    running: Server = request.getfixturevalue("postgresql")
    with running.database() as database:
        yield database


@contextmanager
def watching(folder: Path, address: str, port: int) -> Generator[subprocess.Popen[bytes]]:
    command = [program("viva"), "watch-traces", "--port", str(port)]
    command += ["--metrics", "refusal", "--idle", "2s", "--store", address]
    with (folder / "log").open("ab") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            kill(process)


class Sender:
    """Sends requests as an exporter does, each until it is acknowledged."""

    def __init__(self, port: int) -> None:
        self._port, self.acknowledged = port, 0

    def send(self, body: bytes) -> None:
        for _ in range(3000):
            with suppress(OSError, http.client.HTTPException):
                if self._try(body) == 200:
                    self.acknowledged += 1
                    return
            time.sleep(0.1)
        raise AssertionError("never acknowledged")

    def wait(self) -> None:
        """Wait until the receiver answers."""
        for _ in range(3000):
            with suppress(OSError, http.client.HTTPException):
                self._try(b"")
                return
            time.sleep(0.1)
        raise AssertionError("never answered")

    def _try(self, body: bytes) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("POST", "/v1/traces", body, {"content-type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()


def bodies(talks: int) -> Iterator[bytes]:
    for begin in range(0, talks, AT_ONCE):
        some = range(begin, begin + AT_ONCE)
        yield json.dumps(export(*(turn(f"talk {one}", number) for one in some for number in range(TURNS)))).encode()


def test_nothing_is_lost_and_nothing_is_judged_twice(tmp_path: Path, address: str) -> None:
    send_and_kill(tmp_path, address, talks=1000, killed_after=(2, 6))


def send_and_kill(folder: Path, address: str, talks: int, killed_after: Sequence[int]) -> None:
    """Send so many conversations, kill the receiver after so many requests, and once more while the rest is judged."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sender, begun = Sender(port), time.monotonic()
    with ThreadPoolExecutor(4) as senders:
        sent = senders.map(sender.send, bodies(talks))
        for goal in killed_after:
            with watching(folder, address, port) as process:
                while sender.acknowledged < goal:
                    assert process.poll() is None
                    time.sleep(0.01)
                kill(process)  # while others are sending
        with watching(folder, address, port) as process:
            list(sent)
            print(f"{talks * TURNS / (time.monotonic() - begun):,.0f} spans/s, with {len(killed_after) + 1} starts")
            wait_for(address, talks // 2, process)
            kill(process)
        with watching(folder, address, port) as process:
            wait_for(address, talks, process)
            sender.wait()  # all may have been judged before this one had started
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
    with Store.open(address, create=False) as store:
        runs = store.runs()
        keys = Counter(attempt.key.sample_id for run in runs for attempt in store.attempts(run.id))
        lengths = {len(attempt.trajectory.messages) for run in runs for attempt in store.attempts(run.id)}
        scored = sum(len(list(store.scores(store.grading(run.id).id))) for run in runs)
    assert keys == Counter(f"talk {number}" for number in range(talks))
    assert lengths == {2 * TURNS}
    assert scored == talks


def wait_for(address: str, talks: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until so many conversations are judged."""
    deadline = time.monotonic() + 600
    with Store.open(address) as store:
        while sum(store.counts(run.id)[0] for run in store.runs()) < talks:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
