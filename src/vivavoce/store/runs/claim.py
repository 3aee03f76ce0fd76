"""A claim on a run: one process at a time may work on it. It ends with the process, however that ends."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from vivavoce.errors import StoreError, UsageError
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.database.database import Database, plain_errors

try:
    import fcntl
except ImportError:  # Windows has no such locks; two resumes of one run are found out by the store there
    fcntl = None

LOOKS = 5
"""Attempts to get a lock: a process that only checks whether a run is held has it for a moment."""

_KEY = "hashtextextended('vivavoce ' || :run, 0)"


class Claimed(UsageError):
    """Another process is working on a run."""


def claimed(database: Database, run_id: str) -> AbstractContextManager[None]:
    """Hold a run while working on it.

    Raises:
        Claimed: another process is working on it.
        StoreError: the store cannot be written.
    """
    if is_postgresql(database.place):
        return claimed_in_database(database.engine, database.place, run_id)
    return claimed_in_file(database.place, run_id)


def held(database: Database, run_id: str) -> bool:
    """Return whether a process is working on a run."""
    if is_postgresql(database.place):
        return held_in_database(database.engine, database.place, run_id)
    return held_in_file(database.place, run_id)


@contextmanager
def claimed_in_file(place: str, run_id: str) -> Generator[None]:
    """Hold a run of an SQLite file by a lock on a file beside it.

    Raises:
        Claimed: another process is working on it.
        StoreError: the folder of the store cannot be written.
    """
    if fcntl is None:
        yield
        return
    path = Path(f"{place}.{run_id}.lock")
    descriptor = _lock(path, place, run_id)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            path.unlink()
        os.close(descriptor)


@contextmanager
def claimed_in_database(engine: Engine, place: str, run_id: str) -> Generator[None]:
    """Hold a run of a PostgreSQL database by an advisory lock of a connection of its own.

    Raises:
        Claimed: another process is working on it.
    """
    with plain_errors(place):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with connection:
        lock = text(f"SELECT pg_try_advisory_lock({_KEY})")
        with plain_errors(place):
            free = connection.execute(lock, {"run": run_id}).scalar_one()
        if not free:
            raise _held(run_id)
        try:
            yield
        finally:
            with suppress(DBAPIError):  # of a server that is gone, which keeps no lock
                connection.execute(text(f"SELECT pg_advisory_unlock({_KEY})"), {"run": run_id})
            connection.invalidate()


def held_in_file(place: str, run_id: str) -> bool:
    """Return whether a process is working on a run of an SQLite file; True if unknown."""
    if fcntl is None:
        return True
    try:
        descriptor = os.open(f"{place}.{run_id}.lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:  # it is that of another user, who is at work
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def held_in_database(engine: Engine, place: str, run_id: str) -> bool:
    """Return whether a process is working on a run of a PostgreSQL database."""
    query = f"""
        SELECT EXISTS (
            SELECT 1 FROM pg_locks, (SELECT {_KEY} AS key) AS wanted
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND classid::bigint = (key >> 32) & 4294967295 AND objid::bigint = key & 4294967295
        )"""
    with plain_errors(place), engine.connect() as connection:
        return bool(connection.execute(text(query), {"run": run_id}).scalar_one())


def _lock(path: Path, place: str, run_id: str) -> int:
    """Return a file that is locked for this process alone.

    The previous owner deletes the file at the end; a waiting process must not use a file that others cannot find.
    """
    for _ in range(LOOKS):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise StoreError(f"{place}: nothing can be written beside it: {error.strerror}") from error
        if _is_mine(descriptor, path):
            return descriptor
        os.close(descriptor)
        time.sleep(0.01)
    raise _held(run_id)


def _is_mine(descriptor: int, path: Path) -> bool:
    """Return whether an open file could be locked for this process, and is still the one at its path."""
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _held(run_id: str) -> Claimed:
    return Claimed(f"another process is working on run {run_id}; wait for it, or stop it")
