"""A connection to PostgreSQL that ends when the server does not answer any more, however long its statements take."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.errors import ConnectionTimeout
from psycopg.rows import TupleRow

T = TypeVar("T")

QUIET_SECONDS = 10.0
"""Seconds without a byte from the server after which it is asked whether it still answers, and after each further."""

PROBE_SECONDS = 5
"""Seconds in which the server has to answer another connection."""


class ServerConnection(psycopg.Connection[TupleRow]):
    """A connection that asks the server on a second one whether it still answers, while a statement takes long.

    A statement may take as long as it needs: a server that works on it answers the second connection. One that is
    frozen, or that a network no longer reaches, does not, and nothing closes the first connection either.
    """

    def wait(self, gen: PQGen[T], *arguments: Any, **options: Any) -> T:  # what else it takes depends on the version
        """Wait for an answer.

        Raises:
            psycopg.OperationalError: the server does not answer; this connection is closed.
        """
        return super().wait(self._with_probes(gen), *arguments, **options)

    def _with_probes(self, statement: PQGen[T]) -> PQGen[T]:
        try:
            state = next(statement)
            heard_at = time.monotonic()
            while True:
                ready = yield state
                is_quiet = time.monotonic() - heard_at > QUIET_SECONDS
                if is_quiet and not ready:
                    self._check_server()
                if is_quiet or ready:
                    heard_at = time.monotonic()
                state = statement.send(ready)
        except StopIteration as end:
            return end.value

    def _check_server(self) -> None:
        address = make_conninfo(**self.info.get_parameters(), password=self.info.password)
        try:
            psycopg.connect(address, connect_timeout=PROBE_SECONDS).close()
        except ConnectionTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError("timeout expired") from error
        except psycopg.OperationalError:
            return  # it refuses, so it answers
