"""Bringing a database to the schema we know, when it is opened."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from vivavoce.errors import StoreError, UsageError
from vivavoce.store import schema
from vivavoce.store.database import LOCK_WAIT, for_writing
from vivavoce.store.schema import HEAD

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, place: object) -> None:
    """Run the migrations that the database lacks, all or none; several processes may do so at once.

    Raises:
        UsageError: the file belongs to another program.
        StoreError: the file belongs to a newer vivavoce.
    """
    with engine.connect() as connection:
        if _is_current(connection, place):
            return
        connection.rollback()
        if engine.url.query.get("mode") == "ro":
            raise StoreError(
                f"{place}: it is of an older vivavoce and cannot be upgraded where it is, for its folder is "
                "read-only; copy it elsewhere"
            )
        _use_wal(connection, place)
        with for_writing(connection).begin():
            if not _tables(connection):
                create(connection)
            elif not _is_current(connection, place):
                migrate(connection)


def _is_current(connection: Connection, place: object) -> bool:
    names = _tables(connection)
    if not names:
        return False
    if "alembic_version" not in names:
        raise UsageError(f"{place} is no store but a database of another program; name another file")
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    if version > HEAD:
        raise StoreError(
            f"{place}: written by a newer vivavoce (schema {version}, this one knows up to {HEAD}); "
            "upgrade it: pip install --upgrade vivavoce"
        )
    return version == HEAD


def _tables(connection: Connection) -> set[str]:
    return set(connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'")).scalars())


def _use_wal(connection: Connection, place: object) -> None:
    """Let readers and the writer work at the same time; SQLite does not wait for a lock here, so we do."""
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
        raise StoreError(f"{place}: this file system cannot hold a store that is read while it is written")


def create(connection: Connection) -> None:
    """Make the tables of a new database as the migrations would, without the half second that alembic takes."""
    schema.metadata.create_all(connection)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def migrate(connection: Connection) -> None:
    """Run the migrations that an older database lacks."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
