"""Upgrading the schema of a store: the plan, and the upgrade while nothing else uses the store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine, text

from vivavoce.errors import StoreError
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.store.database.database import plain_errors, reach
from vivavoce.store.database.migrations import run_steps, steps_after
from vivavoce.store.database.upgrade import changing_schema, schema_version

_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
AND (starts_with(application_name, 'vivavoce') OR usename <> current_user)
"""
"""Connections of other processes; of those of another user, nobody may see the program."""

CLOSING_SECONDS = 2.0
"""How long a connection that a client has closed may be listed by PostgreSQL."""


class StoreInUse(StoreError):
    """Other processes use the store."""


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The migrations that a store lacks, oldest first, each with its version and what it adds.

    `version` is the present schema. Without `steps` the store is up to date.
    """

    place: str
    version: str
    steps: tuple[tuple[str, str], ...]


def migration_plan(address: str) -> MigrationPlan:
    """Return the migrations that a store lacks.

    Raises:
        UsageError: there is no store at the address.
        StoreError: the store cannot be read, or belongs to a newer vivavoce.
    """
    place = Place(address)
    with _engine(place) as engine, engine.connect() as connection:
        version = schema_version(connection, place)
    if version is None:
        raise StoreError(f"{place}: no store; no run has been stored here yet")
    return MigrationPlan(place, version, tuple((step.version, step.title) for step in steps_after(version)))


def migrate_store(address: str) -> None:
    """Upgrade a store to the schema of this vivavoce, completely or not at all.

    Raises:
        StoreInUse: other processes use the store; nothing was changed.
        StoreError: the store cannot be changed.
    """
    place = Place(address)
    check_unused(place)
    with _engine(place) as engine:
        _run_missing_steps(engine, place)


def _run_missing_steps(engine: Engine, place: str) -> None:
    """Run the migrations that the database lacks, all or none.

    Raises:
        UsageError: the database belongs to another program.
        StoreError: the database belongs to a newer vivavoce, or may not be changed.
    """
    with engine.connect() as connection, changing_schema(connection, place):
        version = schema_version(connection, place)
        if version is not None:
            run_steps(connection, steps_after(version))


def check_unused(place: Place) -> None:
    """Check that no other process has a store open, whatever its version.

    Raises:
        StoreInUse: one has.
        StoreError: the store cannot be used.
    """
    if not is_postgresql(place):
        _check_file_unused(place)
        return
    with _engine(place) as engine:
        count = _count_others(engine)
        until = time.monotonic() + CLOSING_SECONDS
        while count and time.monotonic() < until:
            time.sleep(0.05)
            count = _count_others(engine)
    if count:
        connections = "1 connection" if count == 1 else f"{count} connections"
        raise StoreInUse(f"{place}: other programs use this store ({connections}); stop all servers and runs first")


def _count_others(engine: Engine) -> int:
    with engine.connect() as connection:  # what a transaction sees of other connections does not change
        return connection.execute(text(_OTHERS)).scalar_one()


def _check_file_unused(place: Place) -> None:
    """Try to leave the WAL mode of a file, which SQLite allows only to the last connection."""
    path = path_of(place)
    if not path.exists():
        return
    with plain_errors(place), closing(sqlite3.connect(path, timeout=0)) as connection:
        try:
            before = connection.execute("PRAGMA journal_mode").fetchone()
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise StoreInUse(f"{place}: other programs use this store; stop all servers and runs first") from error
        connection.execute(f"PRAGMA journal_mode={'WAL' if before == ('wal',) else 'DELETE'}")


@contextmanager
def _engine(place: Place) -> Generator[Engine]:
    engine = reach(place, create=False)
    try:
        with plain_errors(place):
            yield engine
    finally:
        engine.dispose()
