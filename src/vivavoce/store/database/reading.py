"""`Reading`: one connection for all that is read in one go, so that it costs little and agrees with itself."""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from threading import Lock

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError


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
