"""The database behind a store: reaching it, reading and writing it, fencing jobs, and what its errors mean."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, TypeAlias, cast

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Dialect,
    Double,
    Engine,
    Row,
    Select,
    Table,
    any_,
    event,
    func,
    insert,
    literal,
    literal_column,
    select,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnection

from vivavoce.errors import StoreError
from vivavoce.lazy_names import lazy
from vivavoce.store.database import sqlite
from vivavoce.store.database.address import Place, is_postgresql, path_of, url_of
from vivavoce.store.database.sqlite import WRITES

OPTION = "vivavoce_fence"
"""The option of connections that holds the fence."""

PAUSE = "30s"
"""How long a process may stand still in a transaction; PostgreSQL ends it then, so that another server goes on."""

_FENCE_IN_FILE = "SELECT fence FROM jobs WHERE id = ?"
_FENCE_IN_DATABASE = (
    "SELECT fence, set_config('idle_in_transaction_session_timeout', %s, true) FROM jobs WHERE id = %s FOR SHARE"
)


class Fence(NamedTuple):
    """A claim of a job, and its number."""

    job: str
    number: int


class Fenced(StoreError):
    """Another server has claimed the job, so nothing was written."""


def guard(engine: Engine) -> None:
    """Have each writing transaction of a fenced connection raise `Fenced` where its job has another owner."""
    event.listen(engine, "begin", _check)


def _check(connection: Connection) -> None:
    options = connection.get_execution_options()
    fence: Fence | None = options.get(OPTION)
    if fence is None or not options.get(WRITES):
        return
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "postgresql":
        found = driver.execute(_FENCE_IN_DATABASE, (PAUSE, fence.job)).fetchone()
    else:
        found = driver.execute(_FENCE_IN_FILE, (fence.job,)).fetchone()
    if found is None or found[0] != fence.number:
        driver.rollback()
        raise Fenced(f"job {fence.job} was taken over by another server; this server stops writing")


class Reading:
    """The connection of a request to its store: taken from the pool at the first read, and given back at the end.

    All reads see the store as it was at the first. Another engine, or a read after the end, has its own connection.
    """

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._ended = False
        self._lock = Lock()

    def connection(self, engine: Engine) -> Connection | None:
        """Return the connection, None where the reader needs one of its own."""
        with self._lock:
            if self._ended:
                return None
            if self._connection is None:
                self._connection = engine.connect()
            return self._connection if self._connection.engine is engine else None

    def renew(self, engine: Engine) -> None:
        """Let what is read from now on see what was just written through an engine."""
        if (connection := self._connection) is not None and connection.engine is engine:
            connection.rollback()

    def end(self) -> None:
        """Give the connection back, also one that broke; what reads later has its own."""
        with self._lock:
            self._ended = True
            connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):  # whatever broke it was told to the reader
                connection.close()


READING: ContextVar[Reading | None] = ContextVar("reading", default=None)
"""What is being read in one go here, None where each read is for itself."""


AnyRow: TypeAlias = "Row[*tuple[Any, ...]]"
AnySelect: TypeAlias = "Select[*tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Database:
    """The database of one open store; `place` names it in errors. With a `fence` it writes only for a job."""

    engine: Engine
    place: Place
    fence: Fence | None = None

    def fenced(self, fence: Fence) -> Database:
        """Return the same database for the writes of a job; they are refused once another server has claimed it."""
        return Database(self.engine.execution_options(**{OPTION: fence}), self.place, fence)

    def unfenced(self) -> Database:
        """Return the same database for writes that say themselves whose they are."""
        return Database(self.engine.execution_options(**{OPTION: None}), self.place)

    @contextmanager
    def connected(self) -> Generator[Connection]:
        """Give a connection to read with; an error of the database becomes a `StoreError`.

        It is that of the `Reading` under way, if there is one, and must be left as it is.
        """
        with plain_errors(self.place):
            reading = READING.get()
            if reading is not None and (shared := reading.connection(self.engine)) is not None:
                yield shared
                return
            with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def apart(self) -> Generator[Connection]:
        """Give a connection that nothing else uses; an error of the database becomes a `StoreError`.

        What is read afterwards sees what it wrote, also within a `Reading`.
        """
        with plain_errors(self.place), self.engine.connect() as connection:
            yield connection
        if (reading := READING.get()) is not None:
            reading.renew(self.engine)

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Give a connection to change something with, all of it when the block ends, or nothing where it raises."""
        with self.apart() as connection, for_writing(connection).begin():
            yield connection


def reach(place: Place, *, create: bool) -> Engine:
    """Return the engine of a store; with `create`, what is not there yet may be made.

    Raises:
        UsageError: the file is not a store, or none is there and `create` is False.
        StoreError: the folder of the file cannot be made.
    """
    if is_postgresql(place):
        engine = lazy("vivavoce.store.database.postgresql:connect_to")(url_of(place.address))
        lazy("vivavoce.store.database.postgresql_schema:use_schema_of_store")(engine, place)
        return engine
    path = path_of(place)
    sqlite.check_file(path, create=create)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: its folder cannot be created: {error.strerror}") from error
    return sqlite.connect_to(path)


def on_postgresql(connection: Connection | Engine) -> bool:
    """Say which of the two databases this leads to."""
    return connection.dialect.name == "postgresql"


def for_writing(connection: Connection) -> Connection:
    """Return the connection with transactions that see what was just written.

    In SQLite they wait for their turn to write at once, not half-way.
    """
    if on_postgresql(connection):
        return connection.execution_options(isolation_level="READ COMMITTED", **{WRITES: True})
    return connection.execution_options(**{WRITES: True})


def values_of(row: AnyRow) -> dict[str, Any]:
    """Return the values of a row by the names of its columns."""
    return dict(row._mapping)  # pyright: ignore[reportPrivateUsage] - its documented name


def columns_of(row: AnyRow) -> tuple[str, ...]:
    """Return the names of the columns of a row."""
    return row._fields  # pyright: ignore[reportPrivateUsage] - its documented name


def tuples_of(connection: Connection, query: AnySelect) -> list[tuple[Any, ...]]:
    """Return the rows of a query as the database gives them, which is faster where they are many."""
    result = connection.execute(query)
    cursor = cast("Any", result).cursor
    rows: list[tuple[Any, ...]] = list(cursor.fetchall())
    result.close()
    return rows


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the drivers themselves; psycopg is there only when it was needed."""
    psycopg = sys.modules.get("psycopg")
    return (sqlite3.Error, psycopg.Error) if psycopg else (sqlite3.Error,)


@contextmanager
def plain_errors(place: str) -> Generator[None]:
    """Turn every error of the database into a `StoreError` that says what it means."""
    try:
        yield
    except NoConnection as error:
        raise StoreError(f"{place}: too many connections; try again") from error
    except (DBAPIError, *driver_errors()) as error:
        raise StoreError(f"{place}: {meaning(error)}") from error
    except UnicodeDecodeError as error:  # the message of SQLite quotes bytes of the file
        raise StoreError(f"{place}: {sqlite.DAMAGED}") from error


def meaning(error: Exception) -> str:
    """Say what an error of the database, or of its driver, means and, where we know it, what to do."""
    cause = (isinstance(error, DBAPIError) and error.orig) or error
    if "psycopg" in sys.modules:
        import psycopg

        if isinstance(cause, psycopg.Error):
            return lazy("vivavoce.store.database.postgresql:meaning")(cause)
    return sqlite.meaning(cause)


def is_forbidden(error: DBAPIError) -> bool:
    """Say whether the database refused a change because this user may only read."""
    if isinstance(error.orig, sqlite3.Error):
        return (error.orig.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_READONLY
    return getattr(error.orig, "sqlstate", None) in ("25006", "42501")


def is_duplicate(error: IntegrityError) -> bool:
    """Say whether the database refused a row because it has one with that key."""
    return "unique" in str(error.orig).lower()


_IN_DATABASE = "extract(epoch FROM clock_timestamp())::float8"
_IN_FILE = "(julianday('now') - 2440587.5) * 86400.0"


def now_in(connection: Connection) -> ColumnElement[float]:
    """Return what is the present in a statement, in seconds since the epoch."""
    return literal_column(_IN_DATABASE if on_postgresql(connection) else _IN_FILE, Double)


def any_of(connection: Connection, column: ColumnElement[Any], numbers: Sequence[int]) -> ColumnElement[bool]:
    """Return the condition that a column holds one of some numbers, quick to write down where they are thousands."""
    if on_postgresql(connection):
        return column == any_(literal(list(numbers), ARRAY(BigInteger)))
    return column.in_(select(func.json_each(json.dumps(list(numbers))).table_valued("value").c.value))


Values = tuple[Any, ...]
Columns = tuple[str, ...]

LARGEST = 512
"""Rows that are read or written at once."""


def insert_rows(
    connection: Connection, table: Table, columns: Columns, rows: Sequence[Values], *, once: bool = False
) -> None:
    """Insert rows that hold these columns; they go past the types of the columns, so their text has to be storable.

    `once` leaves out those whose key is there already.

    Raises:
        UnicodeEncodeError: a text has a lone surrogate.
        DataError: PostgreSQL does not take a text with U+0000.
    """
    if on_postgresql(connection) and not once:
        _stream(connection, table, columns, rows)
    elif rows:
        connection.exec_driver_sql(_statement(table, columns, connection.dialect, once), list(rows))


def _stream(connection: Connection, table: Table, columns: Columns, rows: Sequence[Values]) -> None:
    if not rows:
        return
    statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"
    driver: Any = connection.connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as stream:
            for row in rows:
                stream.write_row(row)
    except driver_errors() as error:
        raise DBAPIError.instance(statement, None, error, Exception, dialect=connection.dialect) from error


@cache
def _statement(table: Table, columns: Columns, dialect: Dialect, once: bool) -> str:
    statement = str(insert(table).inline().values(dict.fromkeys(columns)).compile(dialect=dialect))
    return f"{statement} ON CONFLICT DO NOTHING" if once else statement


_LAST_TIME = 253_402_214_400.0
"""The last day of the year 9999, in seconds since the epoch."""


class UnreadableRow(StoreError):
    """A row of the store has values that vivavoce does not write."""


def is_time(value: object) -> bool:
    """Return whether a value is seconds since the epoch that a calendar can show."""
    return isinstance(value, int | float) and 0 <= value < _LAST_TIME


def check_times(*values: object) -> None:
    """Check that values are times, or None.

    Raises:
        ValueError: one is not.
    """
    for value in values:
        if value is not None and not is_time(value):
            raise ValueError(f"{value!r} is not a time")
