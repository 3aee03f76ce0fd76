"""A claim on a run: one process at a time may work on it. It ends with the process, however that ends.

A job has its run as long as it has its lease, so that another server can continue it where the process stands still.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Engine, select, text, update
from sqlalchemy.exc import DBAPIError

from vivavoce.errors import StoreError, UsageError
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.database.database import Database, Fence, now_in, plain_errors
from vivavoce.store.database.schema import jobs

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
    if database.fence is not None:
        return _claimed_by_job(database, database.fence, run_id)
    return _claimed_beside_jobs(database, run_id)


def held(database: Database, run_id: str) -> bool:
    """Return whether a process is working on a run."""
    return held_by_process(database, run_id) or held_by_job(database, run_id)


def claimed_by_process(database: Database, name: str) -> AbstractContextManager[None]:
    """Hold a run, or another name, until this process ends.

    Raises:
        Claimed: another process holds it.
        StoreError: the store cannot be written.
    """
    if is_postgresql(database.place):
        return claimed_in_database(database.engine, database.place, name)
    return claimed_in_file(database.place, name)


def held_by_process(database: Database, name: str) -> bool:
    """Return whether a process holds a run, or another name."""
    if is_postgresql(database.place):
        return held_in_database(database.engine, database.place, name)
    return held_in_file(database.place, name)


def held_by_job(database: Database, run_id: str, besides: str = "") -> bool:
    """Return whether a job works on a run, its lease is good, and its server lives."""
    j = jobs.c
    with database.connected() as connection:
        mine = (j.holds == run_id) & (j.id != besides) & (j.lease_until > now_in(connection))
        owners = connection.execute(select(j.owner).where(mine)).scalars().all()
    return any(held_by_process(database, owner or "") for owner in owners)


@contextmanager
def _claimed_beside_jobs(database: Database, run_id: str) -> Generator[None]:
    with claimed_by_process(database, run_id):
        if held_by_job(database, run_id):
            raise _held(run_id)
        yield


@contextmanager
def _claimed_by_job(database: Database, fence: Fence, run_id: str) -> Generator[None]:
    """Write down that a job works on a run, and then look who else does: of two who begin at once, one sees the other.

    It is undone at the end, unless another server has claimed the job since.
    """
    _note_hold(database, fence, run_id)
    try:
        if held_by_process(database, run_id) or held_by_job(database, run_id, fence.job):
            raise _held(run_id)
        yield
    finally:
        _note_hold(database, fence, None)


def _note_hold(database: Database, fence: Fence, run_id: str | None) -> None:
    mine = (jobs.c.id == fence.job) & (jobs.c.fence == fence.number)
    with database.unfenced().writing() as connection:
        connection.execute(update(jobs).where(mine).values(holds=run_id))


@contextmanager
def claimed_in_file(place: str, run_id: str) -> Generator[None]:
    """Hold a run of an SQLite file by a lock on a file next to it.

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
            raise StoreError(f"{place}: cannot write next to it: {error.strerror}") from error
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
