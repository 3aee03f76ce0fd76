"""The schema of a database: made in a new one, checked when one is opened and while it is open, upgraded when asked."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_mock_engine, event, text
from sqlalchemy.schema import ExecutableDDLElement

from vivavoce.errors import StoreError, UsageError
from vivavoce.lazy_names import lazy
from vivavoce.store.database import schema
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.store.database.database import for_writing, on_postgresql
from vivavoce.store.database.schema import HEAD
from vivavoce.store.database.sqlite import use_wal


class OlderSchema(StoreError):
    """The database belongs to an older vivavoce, and nothing was changed."""


def prepare(engine: Engine, place: str, *, create: bool = True) -> None:
    """Make the tables of a new database, or check that an existing one has the schema we know.

    Several processes may do so at once.

    Raises:
        UsageError: the database belongs to another program, or it has no tables yet and `create` is False.
        OlderSchema: the database belongs to an older vivavoce.
        StoreError: the database belongs to a newer vivavoce, or may not be changed.
    """
    with engine.connect() as connection:
        version = schema_version(connection, place)
        if version == HEAD:
            return
        if version is not None:
            raise OlderSchema(
                f"{place}: written by an older vivavoce (schema {version}, this one needs {HEAD}); stop the "
                f"programs that use it, then run: viva store migrate --store {place}"
            )
        if not create:
            raise UsageError(f"no store at {place}: no run has been stored here yet")
        connection.rollback()
        with changing_schema(connection, place):
            if not _tables(connection):
                make_tables(connection)


@contextmanager
def changing_schema(connection: Connection, place: str) -> Generator[None]:
    """Run a block in a transaction while no other process changes the schema."""
    if not on_postgresql(connection):
        use_wal(connection, place)
    with for_writing(connection).begin():
        if on_postgresql(connection):
            lazy("vivavoce.store.database.postgresql:lock_schema")(connection, place)
        yield


def schema_version(connection: Connection, place: str) -> str | None:
    """Return the version of the schema of a database, None if it has no tables yet.

    Raises:
        UsageError: the database belongs to another program.
        StoreError: the database belongs to a newer vivavoce, or a file contains what vivavoce does not create.
    """
    names = _tables(connection)
    if not names:
        return None
    known = names >= {"alembic_version", "runs"}
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if known else None
    if version is None or not re.fullmatch(r"\d{4}", version):
        raise UsageError(f"{place} is a database of another program, not a store; name another database")
    if version > HEAD:
        raise newer(place, version)
    if not on_postgresql(connection):
        _check_definitions(connection, place, version)
    return version


_DEFINITIONS = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
_DIGEST = "ae588b137c6fc56d5ab3e98c7551f4424d46648f19675321a49a3d5236e0e7b8"
"""The SHA-256 of the definitions of a new file, which saves compiling them to compare each."""


def _check_definitions(connection: Connection, place: str, version: str) -> None:
    """Check that a file defines only what vivavoce creates, and tables of other names, which nothing here reads.

    Triggers, views, generated columns and checks of another file would run in each of our reads and writes.

    Raises:
        StoreError: it defines something else.
    """
    rows = [(kind, name, _one_line(sql)) for kind, name, sql in connection.execute(text(_DEFINITIONS)).all()]
    definitions = "\n".join(sql for _, _, sql in rows)
    if hashlib.sha256(definitions.encode("utf-8", "surrogateescape")).hexdigest() == _DIGEST:
        return
    known = _known_definitions()
    for kind, name, sql in rows:
        if sql in known or _is_other_table(name, sql):
            continue
        if version != HEAD and _is_older_definition(sql):  # compared once it is upgraded
            continue
        raise StoreError(
            f"{place}: {kind} '{name}' is not as vivavoce creates it, and may change or block what is read and "
            "written; use a store that no other program has changed"
        )


def _one_line(sql: str) -> str:
    return " ".join(sql.split())


@cache
def _known_definitions() -> frozenset[str]:
    """Return the definitions of a new file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (*_statements("sqlite"), _VERSION_TABLE):
            connection.execute(statement)
        return frozenset(_one_line(sql) for _, _, sql in connection.execute(_DEFINITIONS))


def _is_other_table(name: str, sql: str) -> bool:
    """Return whether this defines an ordinary table of a name that no table of ours has."""
    table = re.match(r"CREATE TABLE [\"'`\[]?(\w+)", sql)
    return table is not None and table[1] == name and not _is_ours(name)


def _is_ours(name: str) -> bool:
    """Return whether SQLite takes this for the name of a table of ours."""
    return name.lower() in {*schema.metadata.tables, "alembic_version"} or name.lower().startswith("passage_words")


def _is_older_definition(sql: str) -> bool:
    """Return whether this defines an ordinary table or index, or the table of words for search."""
    return re.match(r"CREATE (TABLE|(UNIQUE )?INDEX|VIRTUAL TABLE passage_words USING fts5)\b", sql) is not None


def newer(place: str, version: str) -> StoreError:
    """Return what is said of a database whose schema is newer than the one we know."""
    return StoreError(
        f"{place}: written by a newer vivavoce (schema {version}, this one knows up to {HEAD}); "
        "upgrade it: pip install --upgrade vivavoce"
    )


def _tables(connection: Connection) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if on_postgresql(connection):
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    return set(connection.execute(text(query)).scalars())


_VERSION_TABLE = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"


def make_tables(connection: Connection) -> None:
    """Make the tables of a new database as the steps would, without the half second that alembic takes."""
    for statement in _statements(connection.engine.url.drivername):
        connection.exec_driver_sql(statement)
    connection.execute(text(_VERSION_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


@cache
def _statements(driver: str) -> list[str]:
    """Return what makes the tables and indexes, which takes longer to write than to run."""
    written: list[str] = []

    def write(made: ExecutableDDLElement, *_: object, **__: object) -> None:
        written.append(str(made.compile(dialect=writer.dialect)))

    writer = create_mock_engine(f"{driver}://", write)
    schema.metadata.create_all(writer, checkfirst=False)
    return written


_VERSION = "SELECT version_num FROM alembic_version"


def watch(engine: Engine, place: Place) -> None:
    """Have each transaction of an engine raise a `StoreError` where the database is not what it was."""
    if not is_postgresql(place):
        look = _watch_of_file(place)
        event.listen(engine, "do_connect", lambda *_: look())  # or it would make an empty file in its place
        event.listen(engine, "begin", _each_time(look))

    def read_version(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        found = driver.execute(_VERSION).fetchone()
        version = found[0] if found else ""
        if version > HEAD:
            raise newer(place, version)
        if version != HEAD:
            raise StoreError(f"{place}: its schema changed to {version or 'unknown'} while it was open; restart")

    event.listen(engine, "begin", read_version)


def _each_time(look: Callable[[], None]) -> Callable[[Connection], None]:
    return lambda _: look()


def _watch_of_file(place: Place) -> Callable[[], None]:
    """Return what raises where the file that is there now is gone, or another."""
    path = path_of(place)
    opened = _identity(path)

    def look() -> None:
        found = _identity(path)
        if found is None:
            raise StoreError(f"{place}: the file has been deleted or moved since it was opened; put it back")
        if found != opened:
            raise StoreError(f"{place}: another file has been put in its place since it was opened; start again")

    return look


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
