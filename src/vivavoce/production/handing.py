"""Conversations on their way to a judge: handed to a run, judged once the store has them, or passed over."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

AT_ONCE = 32
"""Conversations that are handed out at a time."""


class Talk(NamedTuple):
    """A conversation for a run: the row of a dataset, with the id that it has there."""

    sample: str
    row: dict[str, Any]


class Period(NamedTuple):
    """A run that is open: until when conversations are given to it, in seconds since 1970.

    `spent` says that it has no budget left.
    """

    run: str
    ends: float
    spent: bool = False


def hand_out(database: sqlite3.Connection, run: str) -> list[Talk]:
    """Give the next conversations that wait to a run, for good."""
    query = "SELECT number, sample, row FROM talk WHERE state = 'waiting' ORDER BY number LIMIT ?"
    found = database.execute(query, (AT_ONCE,)).fetchall()
    database.executemany(
        "UPDATE talk SET state = 'given', run = ? WHERE number = ?", ((run, number) for number, _, _ in found)
    )
    return [_talk(sample, row) for _, sample, row in found]


def given(database: sqlite3.Connection, run: str) -> list[Talk]:
    """Return the conversations that were given to a run and are not judged as far as is known."""
    query = "SELECT sample, row FROM talk WHERE state = 'given' AND run = ? ORDER BY number"
    return [_talk(*row) for row in database.execute(query, (run,))]


def waiting(database: sqlite3.Connection) -> int:
    """Return how many conversations wait to be given to a run."""
    return int(database.execute("SELECT count(*) FROM talk WHERE state = 'waiting'").fetchone()[0])


def is_open(database: sqlite3.Connection) -> bool:
    """Return whether there are spans of which no conversation was made yet."""
    return database.execute("SELECT 1 FROM bundle WHERE open LIMIT 1").fetchone() is not None


def judged(database: sqlite3.Connection, counts: Counter[str], run: str, samples: Iterable[str]) -> None:
    """Say that the store has the scores of these conversations."""
    update = "UPDATE talk SET state = 'judged', row = NULL WHERE state = 'given' AND run = ? AND sample = ?"
    changed = database.executemany(update, [(run, sample) for sample in samples]).rowcount
    counts["judged"] += max(0, changed)


def pass_over(database: sqlite3.Connection, counts: Counter[str], run: str, sample: str | None = None) -> int:
    """Judge no conversation that waits or was given to a run, or not this one; return how many these are."""
    update = "UPDATE talk SET state = 'passed', row = NULL, run = ?1 WHERE (run = ?1 AND state = 'given'"
    if sample is not None:
        changed = database.execute(f"{update} AND sample = ?2)", (run, sample)).rowcount
    else:
        changed = database.execute(f"{update}) OR state = 'waiting'", (run,)).rowcount
    counts["passed"] += changed
    return changed


def give_back(database: sqlite3.Connection, run: str) -> None:
    """Let the conversations that were given to a run wait for another one."""
    database.execute("UPDATE talk SET state = 'waiting', run = NULL WHERE state = 'given' AND run = ?", (run,))


def period(database: sqlite3.Connection) -> Period | None:
    """Return the run that is open, None if none is."""
    row = database.execute("SELECT run, ends, spent FROM period").fetchone()
    return None if row is None else Period(row[0], row[1], bool(row[2]))


def open_period(database: sqlite3.Connection, opened: Period) -> None:
    """Say which run is open, or that it has spent its budget."""
    database.execute("INSERT OR REPLACE INTO period VALUES (?, ?, ?)", opened)


def close_period(database: sqlite3.Connection, run: str) -> None:
    """Say that a run takes nothing more."""
    database.execute("DELETE FROM period WHERE run = ?", (run,))


def _talk(sample: str, row: str) -> Talk:
    return Talk(sample, {**json.loads(row), "id": sample})
