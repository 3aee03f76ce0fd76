"""Retried attempts: the new one replaces the old one, which is kept completely."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, insert, select, update

from vivavoce.records.run import AttemptKey
from vivavoce.store.database.schema import attempts, labels, passages, replaced, sample_index, scores, turns, unread


class Replaced(NamedTuple):
    """A replaced attempt; `rows` are its rows in the store, by the names of the tables."""

    key: AttemptKey
    replaced_at: float
    rows: dict[str, list[dict[str, Any]]]


def replace_attempt(connection: Connection, run_id: str, key: AttemptKey, number: int) -> None:
    """Make room for an attempt with this `number`: move an existing attempt with its key aside.

    Labels stay with the place of the conversation in the run. The caller has the transaction.
    """
    a = attempts.c
    found = select(a.id).where(
        a.run_id == run_id, a.sample_id == key.sample_id, a.target == key.target, a.trial == key.trial
    )
    old = connection.execute(found).scalar()
    if old is None:
        return
    rows = {table.name: _rows(connection, table, old) for table in (attempts, turns, scores)}
    values = {"run_id": run_id, **key._asdict(), "replaced_at": time.time(), "rows": json.dumps(rows)}
    connection.execute(insert(replaced).values(values))
    connection.execute(update(labels).where(labels.c.attempt_id == old).values(attempt_id=number))
    for table in (passages, unread, scores, turns, sample_index):
        connection.execute(delete(table).where(table.c.attempt_id == old))
    connection.execute(delete(attempts).where(a.id == old))


def replaced_attempts(connection: Connection, run_id: str) -> Iterator[Replaced]:
    """Yield the replaced attempts of a run, oldest first."""
    r = replaced.c
    for row in connection.execute(select(replaced).where(r.run_id == run_id).order_by(r.id)):
        yield Replaced(AttemptKey(row.sample_id, row.target, row.trial), row.replaced_at, json.loads(row.rows))


def _rows(connection: Connection, table: Table, number: int) -> list[dict[str, Any]]:
    own = table.c.id if table is attempts else table.c.attempt_id
    return [dict(row) for row in connection.execute(select(table).where(own == number)).mappings()]
