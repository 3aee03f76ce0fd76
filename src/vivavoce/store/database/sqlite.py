"""A store in an SQLite file: what is there, how a connection behaves, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from vivavoce.errors import StoreError, UsageError
from vivavoce.lazy_names import lazy

KEPT = 16
"""Connections; of more that are needed at once, each is closed after its use."""


WRITES = "vivavoce_writes"
"""The option of connections that write."""

LOCK_WAIT = 30
"""Seconds to wait for another writer."""

_HEAD = b"SQLite format 3\0"
"""How every SQLite file begins.

Source: https://www.sqlite.org/fileformat.html, section 1.3.
"""

_PRAGMAS = ("synchronous=FULL", "foreign_keys=ON")

DAMAGED = "the file is damaged; `sqlite3 FILE .recover` may save what is in it"

_MEANINGS = {
    "disk is full": "make room and run again with --resume; what was committed is kept",
    "disk i/o error": "the disk refused to write or read",
    "readonly database": "the file or its folder is read-only",
    "database is locked": f"another process held it for more than {LOCK_WAIT} s",
    "unable to open": "its folder is missing or read-only, or the file may not be read",
    "not a database": "this is some other file",
    "malformed": DAMAGED,
    "could not decode": DAMAGED,
    "scored_has_value": "a score is scored if and only if it has a value",
    "FOREIGN KEY": "its run or its grading is not in the store",
    "no such table": "its tables are gone; has something been put in its place?",
    "no such module": "the SQLite of this Python lacks full-text search; use another Python",
}


def check_file(path: Path, *, create: bool) -> None:
    """Check that a path is that of a store as far as its first bytes tell, or where `create`, that it may become one.

    Raises:
        UsageError: nothing is there, or something else.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; a store is a file")
    try:
        head = _HEAD if _CONNECTED.has(path) else _first_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        head = b""
        if not create:
            raise UsageError(f"no store at {path}: no run has been stored here yet") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    if head and head != _HEAD:
        raise UsageError(f"{path} is not a store; name another file")
    if not head and not create:
        raise UsageError(f"no store at {path}: the file is empty")


class _ConnectedFiles:
    """The SQLite files to which this process has connections; threads may share it.

    The locks of a process on a file are gone as soon as the process closes the file, however it has opened it. Another
    process would then take the file for one that nobody uses, and delete its log.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: Counter[tuple[int, int] | None] = Counter()

    def has(self, path: Path) -> bool:
        """Return whether this process has a connection to a file, so that nothing else here may open it."""
        file = _identity(path)
        with self._lock:
            return file is not None and self._connections[file] > 0

    def watch(self, engine: Engine, path: Path) -> None:
        """Count the connections of an engine."""

        def connected(_connection: object, record: ConnectionPoolEntry) -> None:
            record.info["file"] = _identity(path)
            with self._lock:
                self._connections[record.info["file"]] += 1

        def closed(_connection: object, record: ConnectionPoolEntry) -> None:
            with self._lock:
                self._connections[record.info["file"]] -= 1

        event.listen(engine, "connect", connected)
        event.listen(engine, "close", closed)


_CONNECTED = _ConnectedFiles()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what a file is known by, whatever its path; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_HEAD))


def connect_to(path: Path) -> Engine:
    """Return the engine of an SQLite file; each of its transactions is one that we begin ourselves."""
    engine = create_engine(_url(path), connect_args={"timeout": LOCK_WAIT, "isolation_level": None}, pool_size=KEPT)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    _CONNECTED.watch(engine, path)
    return engine


def use_wal(connection: Connection, place: str) -> None:
    """Let readers and the writer work at the same time; SQLite does not wait for a lock here, so we do.

    Raises:
        StoreError: the file or its file system does not allow it.
    """
    if connection.engine.url.query.get("mode") == "ro":
        raise StoreError(
            f"{place}: written by an older vivavoce, and its folder is read-only, so it cannot be upgraded "
            "here; copy it elsewhere"
        )
    deadline = time.monotonic() + LOCK_WAIT
    driver = connection.connection.cursor()
    while True:
        try:
            driver.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if driver.fetchone() != ("wal",):
        raise StoreError(f"{place}: this file system does not support SQLite's WAL mode")


def meaning(error: BaseException) -> str:
    """Say what an error means and, where we know it, what to do."""
    said = str(error)
    if "unable to open" in said and not lazy("vivavoce.pacing.limits:has_free_handle")():
        return str(lazy("vivavoce.pacing.limits:too_few_handles")())
    hint = next((hint for sign, hint in _MEANINGS.items() if sign.lower() in said.lower()), None)
    return f"{said}: {hint}" if hint else said


def _url(path: Path) -> URL:
    """Return the address of the file.

    Where its folder is read-only, nobody can make the files next to it that readers and writers share. Then nobody
    writes either, and it is read as a file that stays as it is, unless a log that was left behind has to be read too.
    """
    path = path.absolute()
    if not path.exists() or _may_write(path.parent):
        return URL.create("sqlite", database=str(path))
    log = path.with_name(f"{path.name}-wal")
    immutable = {} if log.exists() and log.stat().st_size else {"immutable": "1"}
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query={"uri": "true", "mode": "ro", **immutable})


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _set_pragmas(connection: Any, _record: object) -> None:
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
