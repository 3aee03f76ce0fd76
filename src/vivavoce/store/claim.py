"""A claim on a run: one process at a time may work on it. It ends with the process, however that ends."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Engine, text

from vivavoce.errors import StoreError, UsageError
from vivavoce.store.database import plain_errors

try:
    import fcntl
except ImportError:  # Windows has no such locks; two resumes of one run are found out by the store there
    fcntl = None


@contextmanager
def claimed_in_file(place: str, run_id: str) -> Generator[None]:
    """Hold a run of an SQLite file by a lock on a file beside it.

    Raises:
        UsageError: another process is working on it.
        StoreError: the folder of the store cannot be written.
    """
    if fcntl is None:
        yield
        return
    path = Path(f"{place}.{run_id}.lock")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StoreError(f"{place}: nothing can be written beside it: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise _held(run_id) from error
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
        UsageError: another process is working on it.
    """
    with plain_errors(place):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with connection:
        lock = text("SELECT pg_try_advisory_lock(hashtextextended('vivavoce ' || :run, 0))")
        with plain_errors(place):
            free = connection.execute(lock, {"run": run_id}).scalar_one()
        if not free:
            raise _held(run_id)
        try:
            yield
        finally:
            connection.invalidate()  # ends the connection and with it the lock, also where the server is gone


def _held(run_id: str) -> UsageError:
    return UsageError(f"run {run_id} is being worked on by another process; wait for it, or stop it")
