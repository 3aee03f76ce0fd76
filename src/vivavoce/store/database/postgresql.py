"""A store in a PostgreSQL database: how a connection behaves, and what its errors mean.

Readers see one moment in each look (REPEATABLE READ); writers see what others have just committed (READ COMMITTED), or
two of them that add the same reply would be refused instead of agreeing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text

from vivavoce.errors import MissingExtra, StoreError
from vivavoce.lazy_names import lazy
from vivavoce.store.database.sqlite import KEPT

if TYPE_CHECKING:
    from psycopg import Error

LOCK_WAIT = 30
"""Seconds to wait for a row that another writer holds."""

CONNECT_WAIT = 10
"""Seconds to wait for a server to accept a connection."""

PROGRAM = "vivavoce"
"""How the name of each of our connections begins; an address may add a name of its own."""

SCHEMA_LOCK = 8_461_203_307_556_801
"""The advisory lock under which the tables are made and changed; any number that other programs do not use."""

_BY_STATE = {
    "08": "the connection was lost; run again with --resume: what was committed is kept",
    "22021": "PostgreSQL keeps no character U+0000",
    "23503": "its run or its grading is not in the store",
    "23514": "a score is scored if and only if it has a value",
    "25006": "this database is read-only",
    "42P01": "its tables are gone; has something been put in its place?",
    "42501": "this user lacks that right; docs/reference/store.md, 'Rights of a user', has the GRANT for it",
    "53100": "make room and run again with --resume; what was committed is kept",
    "53300": "the server has no free connection; raise its max_connections, or stop something",
    "54000": "PostgreSQL indexes no name of more than 2,700 bytes",
    "55P03": f"another process held it for more than {LOCK_WAIT} s",
    "57P": "the server is being stopped; run again with --resume when it is back: what was committed is kept",
}
"""What a SQLSTATE, or its beginning, means.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

_BY_TEXT = {
    "password authentication failed": "the password is wrong, or this user may not log in",
    "no password supplied": "give the password in PGPASSWORD or in ~/.pgpass",
    'role "': "there is no such user",
    'database "': "make it first: createdb NAME",
    "connection refused": "is the server running, and does it listen there?",
    "no such file or directory": "is the server running, and does it listen there?",
    "resolve host": "there is no such host",
    "timeout expired": "the server does not answer",
    "server closed the connection": "run again with --resume: what was committed is kept",
}
"""What a refused connection means: it has no SQLSTATE."""


def connect_to(url: URL) -> Engine:
    """Return the engine of a database.

    Raises:
        MissingExtra: psycopg is not installed.
    """
    options = " ".join([f"-c lock_timeout={LOCK_WAIT}s", *url.normalized_query.get("options", ())])
    arguments: dict[str, str | None] = {"client_encoding": "utf8", "options": options}
    arguments["prepare_threshold"] = None  # a plan for any words is a bad one for those that are everywhere
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = str(CONNECT_WAIT)
    own_name = " ".join(url.normalized_query.get("application_name", ()))
    arguments["application_name"] = f"{PROGRAM} {own_name}".rstrip()
    try:
        engine = create_engine(
            url.difference_update_query(["options", "application_name"]),
            connect_args=arguments,
            isolation_level="REPEATABLE READ",
            paramstyle="format",
            pool_pre_ping=True,
            pool_size=KEPT,
            max_overflow=20,
        )
    except ImportError as error:
        raise MissingExtra("a PostgreSQL store", "postgres") from error
    event.listen(engine, "do_connect", _connect)
    return engine


def _connect(_dialect: object, _record: object, arguments: list[Any], options: dict[str, Any]) -> object:
    return lazy("vivavoce.store.database.server_connection:ServerConnection").connect(*arguments, **options)


def lock_schema(connection: Connection, place: str) -> None:
    """Wait until no other process makes or changes the tables; ends with the transaction.

    Raises:
        StoreError: the database cannot hold every text.
    """
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
    encoding = connection.execute(text("SELECT current_setting('server_encoding')")).scalar_one()
    if encoding != "UTF8":
        raise StoreError(f"{place}: its encoding is {encoding}; create a database with: createdb --encoding UTF8 NAME")


def meaning(error: Error) -> str:
    """Say in one line what an error means and, where we know it, what to do."""
    said = error.diag.message_primary or " ".join(str(error).split())
    state = error.sqlstate or ""
    hints = [hint for sign, hint in _BY_STATE.items() if state.startswith(sign)]
    if not state:
        hints = [hint for sign, hint in _BY_TEXT.items() if sign in said.lower()]
    return f"{said}: {hints[0]}" if hints else said
