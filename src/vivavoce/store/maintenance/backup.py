"""Backing up and restoring the file of a store with SQLite's own copy, which is whole while others write."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from vivavoce.errors import StoreError, UsageError
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.store.database.database import plain_errors
from vivavoce.store.database.sqlite import check_file
from vivavoce.store.maintenance.migrating import check_unused, migration_plan

RESTORED = "the store was restored from a backup; to continue, resume the run or submit the job again"
"""The detail of a job that was open in a backup."""


def backup_store(address: str, target: Path) -> int:
    """Copy the file of a store, completely or not at all, and return the size of the copy in bytes.

    Other processes may write meanwhile; the copy is the store at one moment.

    Raises:
        UsageError: the store is a database of PostgreSQL, there is none, or the target exists.
        StoreError: the store cannot be read, or the copy cannot be written.
    """
    place = Place(address)
    if is_postgresql(place):
        raise UsageError(f"{place}: back up a PostgreSQL store with its own program: pg_dump -Fc -f FILE '{place}'")
    migration_plan(address)  # it is a store
    if target.exists():
        raise UsageError(f"{target} exists; name a new file")
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    folders = [folder for folder in target.parents if not folder.exists()]
    try:
        with suppress(FileExistsError):
            target.parent.mkdir(parents=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with plain_errors(place):
            _copy(path_of(place), new)
        os.replace(new, target)
    except OSError as error:
        raise StoreError(f"{target}: the backup cannot be written: {error.strerror or error}") from error
    finally:
        new.unlink(missing_ok=True)
        if not target.exists():
            for folder in folders:
                with suppress(OSError):
                    folder.rmdir()
    return target.stat().st_size


def backup_path(address: str, reason: str) -> Path:
    """Return the path for a backup that is made next to a store before it is changed."""
    path = path_of(Place(address))
    return path.with_name(f"{path.name}.{reason}-{time.strftime('%Y%m%d-%H%M%S')}")


def check_backup(source: Path) -> str:
    """Return the schema of a backup.

    Raises:
        UsageError: it is not a store.
        StoreError: it is damaged, or belongs to a newer vivavoce.
    """
    check_file(source, create=False)
    version = migration_plan(str(source)).version
    with plain_errors(str(source)), closing(sqlite3.connect(source)) as connection:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise StoreError(f"{source}: the file is damaged: {problem}")
    return version


def restore_store(source: Path, address: str) -> int:
    """Replace the content of a store by that of a backup, completely or not at all.

    Jobs that were open when the backup was made are interrupted, so that no server starts them unasked; return how many
    these are.

    Raises:
        UsageError: the store is a database of PostgreSQL, or the backup is not a store.
        StoreInUse: other processes use the store; nothing was changed.
        StoreError: the backup is damaged, or the store cannot be written.
    """
    place = Place(address)
    if is_postgresql(place):
        raise UsageError(
            f"{place}: restore a PostgreSQL store with its own program: "
            f"pg_restore --clean --if-exists -d '{place}' FILE"
        )
    check_backup(source)
    check_unused(place)
    path = path_of(place)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: its folder cannot be created: {error.strerror}") from error
    is_new = not path.exists()
    closed = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with plain_errors(place):
            _copy(source, closed)
            interrupted = _interrupt_jobs(closed)
            _copy(closed, path)
    except BaseException:
        if is_new:
            _remove(path)
        raise
    finally:
        _remove(closed)
    return interrupted


def _interrupt_jobs(path: Path) -> int:
    """Close the open jobs of a file of any version, and return how many there were."""
    values = {"status": "interrupted", "detail": RESTORED, "request": None, "owner": None, "holds": None}
    with _open_file(path) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(jobs)")}
        if not columns:  # an older vivavoce had no jobs
            return 0
        changes = {name: value for name, value in values.items() if name in columns}
        assignments = ", ".join(f"{name} = ?" for name in changes)
        cursor = connection.execute(
            f"UPDATE jobs SET {assignments} WHERE status NOT IN ('finished', 'interrupted', 'failed')",
            list(changes.values()),
        )
        connection.commit()
        return cursor.rowcount


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    with _open_file(source) as reading, _open_file(target) as writing:
        reading.backup(writing)
        writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _open_file(path: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        yield connection
