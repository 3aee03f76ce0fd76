"""Retried attempts: the new one replaces the old one, which is kept completely."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, insert, select, update

from vivavoce.records.run import AttemptKey
from vivavoce.store.database.schema import (
    attempts,
    comments,
    decisions,
    labels,
    passages,
    queue_items,
    replaced,
    sample_index,
    scores,
    turns,
    unread,
)

_ASIDE = -1
"""The trial of an attempt on its way out, which no attempt has."""


class Replaced(NamedTuple):
    """A replaced attempt; `rows` are its rows in the store, by the names of the tables."""

    key: AttemptKey
    replaced_at: float
    rows: dict[str, list[dict[str, Any]]]


def set_aside(connection: Connection, run_id: str, key: AttemptKey) -> int | None:
    """Make room for an attempt: keep an existing one with its key as `replaced`, and return its number.

    Only its row stays, under another key, because what people added refers to it until `take_over`. The caller has the
    transaction.
    """
    a = attempts.c
    found = select(a.id).where(
        a.run_id == run_id, a.sample_id == key.sample_id, a.target == key.target, a.trial == key.trial
    )
    old = connection.execute(found).scalar()
    if old is None:
        return None
    rows = {table.name: _rows(connection, table, old) for table in (attempts, turns, scores)}
    values = {"run_id": run_id, **key._asdict(), "replaced_at": time.time(), "rows": json.dumps(rows)}
    connection.execute(insert(replaced).values(values))
    for table in (passages, unread, scores, turns, sample_index):
        connection.execute(delete(table).where(table.c.attempt_id == old))
    connection.execute(update(attempts).where(a.id == old).values(trial=_ASIDE))
    return old


def take_over(connection: Connection, old: int, number: int) -> None:
    """Give a new attempt, by its `number`, what people added to the one that was set aside, and delete that one."""
    for table in (labels, comments, decisions, queue_items):
        connection.execute(update(table).where(table.c.attempt_id == old).values(attempt_id=number))
    connection.execute(delete(attempts).where(attempts.c.id == old))


def replaced_attempts(connection: Connection, run_id: str) -> Iterator[Replaced]:
    """Yield the replaced attempts of a run, oldest first."""
    r = replaced.c
    for row in connection.execute(select(replaced).where(r.run_id == run_id).order_by(r.id)):
        yield Replaced(AttemptKey(row.sample_id, row.target, row.trial), row.replaced_at, json.loads(row.rows))


def _rows(connection: Connection, table: Table, number: int) -> list[dict[str, Any]]:
    own = table.c.id if table is attempts else table.c.attempt_id
    return [dict(row) for row in connection.execute(select(table).where(own == number)).mappings()]
