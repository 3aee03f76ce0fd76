"""Servers in processes of their own: started, killed, and made to stand still."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from forked import program
from vivavoce.store.database.address import is_postgresql

LEASING = """\
import os, sys
from pathlib import Path
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.serving import serve
from vivavoce.store.store import Store

address, lease, workers = sys.argv[1:]
print(os.getpid(), flush=True)
with Store.open(address) as store:
    serve(
        store, "127.0.0.1", 0, policy=ServerPolicy(Path.cwd(), lease=float(lease)), workers=int(workers),
        started=lambda url: print(url, flush=True),
    )
"""
"""A server whose claims of jobs last as long as its second argument says."""

COMMAND = """\
import os, sys
from vivavoce.cli.main import main

print(os.getpid(), flush=True)
sys.stderr = sys.stdout
main()
"""
"""`viva` with the arguments."""


@dataclass(frozen=True)
class ServerProcess:
    """A server that runs; `call` is what started it and ends with it."""

    call: subprocess.Popen[str]
    pid: int
    url: str

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.call.wait()

    def workers(self) -> list[int]:
        return [int(one) for one in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


@contextmanager
def server_process(folder: Path, code: str, *arguments: str, **environment: str) -> Generator[ServerProcess]:
    """Start a server in a folder, and end it with the block."""
    script = folder / f"serve-{time.monotonic_ns()}.py"
    script.write_text(code)
    given = {**os.environ, **environment}
    command = [program("python"), script, *arguments]
    call = subprocess.Popen(command, cwd=folder, env=given, stdout=subprocess.PIPE, text=True)
    assert call.stdout is not None
    pid, told = int(call.stdout.readline()), call.stdout.readline()
    match = re.search(r"http://127\.0\.0\.1:\d+", told)
    assert match is not None, told
    running = ServerProcess(call, pid, match[0])
    try:
        yield running
    finally:
        with suppress(OSError):  # it was killed
            for one in (pid, *running.workers()):
                os.kill(one, signal.SIGCONT)
        call.terminate()
        call.wait()
        call.stdout.close()


def stand_still(pid: int, address: str) -> None:
    """Have a process stand still, but not while it changes the store: others would wait for it."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        soon(lambda: all(_state(task) == "T" for task in Path(f"/proc/{pid}/task").iterdir()))
        if not (_in_transaction(address) if is_postgresql(address) else _locked(address)):
            return
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)


def _state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def _locked(path: str) -> bool:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    finally:
        connection.close()
    return False


def _in_transaction(address: str) -> bool:
    """Return whether anybody else is in the middle of something in a database."""
    others = "datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
    with psycopg.connect(address) as connection:
        return connection.execute(f"SELECT 1 FROM pg_stat_activity WHERE {others}").fetchone() is not None


def soon(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
