"""The clock of the database, so that processes on several machines agree when something is over."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Double, literal_column

from vivavoce.store.database.database import on_postgresql

_IN_DATABASE = "extract(epoch FROM clock_timestamp())::float8"
_IN_FILE = "(julianday('now') - 2440587.5) * 86400.0"


def now_in(connection: Connection) -> ColumnElement[float]:
    """Return what is the present in a statement, in seconds since the epoch."""
    return literal_column(_IN_DATABASE if on_postgresql(connection) else _IN_FILE, Double)
