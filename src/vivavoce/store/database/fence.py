"""A fence around the writes of a job: who lost the job to another server cannot write for it any more.

Each claim of a job has a number. A transaction that writes for the job looks at the number first, and locks it until it
commits: it is refused if another server has claimed the job since, and that server waits for it if not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, event

from vivavoce.errors import StoreError

OPTION = "vivavoce_fence"
"""The option of connections that holds the fence."""

WRITES = "vivavoce_writes"
"""The option of connections that write."""

PAUSE = "30s"
"""How long a process may stand still in a transaction; PostgreSQL ends it then, so that another server goes on."""

_IN_FILE = "SELECT fence FROM jobs WHERE id = ?"
_IN_DATABASE = (
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
        found = driver.execute(_IN_DATABASE, (PAUSE, fence.job)).fetchone()
    else:
        found = driver.execute(_IN_FILE, (fence.job,)).fetchone()
    if found is None or found[0] != fence.number:
        driver.rollback()
        raise Fenced(f"job {fence.job} was taken over by another server; this server stops writing")
