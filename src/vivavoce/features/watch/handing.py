"""Conversations on their way to a judge: the run of their period, and what waits while no judge answers."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from vivavoce.records.run import Outcome
from vivavoce.report.graded_run import GradedRun
from vivavoce.run.execution import ended
from vivavoce.run.experiment_run import new_id
from vivavoce.store.store import Store


def finish(store: Store, run_id: str) -> None:
    """Say of a run that it is finished; why it stopped early, if it did, stays in the summary of its scores."""
    run, grading = next(iter(store.series.graded_runs([run_id])), (None, None))
    if run is None or run.status == "finished":
        return
    now = time.time()
    if grading is not None and grading.summary is None:
        store.update_grading(ended(grading, GradedRun(store, run, grading).summary(), now))
    store.update_run(run.model_copy(update={"status": "finished", "finished_at": run.finished_at or now}))


BATCH_SIZE = 32
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
    """Give the next conversations that wait to a run, permanently."""
    query = "SELECT number, sample, row FROM talk WHERE state = 'waiting' ORDER BY number LIMIT ?"
    rows = database.execute(query, (BATCH_SIZE,)).fetchall()
    database.executemany(
        "UPDATE talk SET state = 'given', run = ? WHERE number = ?", ((run, number) for number, _, _ in rows)
    )
    return [_talk(sample, row) for _, sample, row in rows]


def load_given(database: sqlite3.Connection, run: str) -> list[Talk]:
    """Return the conversations that were given to a run and are not judged as far as is known."""
    query = "SELECT sample, row FROM talk WHERE state = 'given' AND run = ? ORDER BY number"
    return [_talk(*row) for row in database.execute(query, (run,))]


def waiting(database: sqlite3.Connection) -> int:
    """Return how many conversations wait to be given to a run."""
    return int(database.execute("SELECT count(*) FROM talk WHERE state = 'waiting'").fetchone()[0])


def is_open(database: sqlite3.Connection) -> bool:
    """Return whether there are spans that no conversation was made of yet."""
    return database.execute("SELECT 1 FROM bundle WHERE open LIMIT 1").fetchone() is not None


def mark_judged(database: sqlite3.Connection, counts: Counter[str], run: str, samples: Iterable[str]) -> None:
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


Per = Literal["day", "hour"]

_LENGTHS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
_NAMES = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dt%H"}


def period_at(now: float, per: Per, name: str, store: Store) -> Period:
    """Return the period that a time is in, with the id of a run that the store does not have yet."""
    moment = datetime.fromtimestamp(now, UTC)
    begins = moment.replace(minute=0, second=0, microsecond=0)
    if per == "day":
        begins = begins.replace(hour=0)
    end = moment.strftime(_NAMES[per])
    run_id, number = new_id(name, end), 1
    while store.series.graded_runs([run_id]):
        number += 1
        run_id = new_id(name, f"{end}-{number}")
    return Period(run_id, (begins + _LENGTHS[per]).timestamp())


def time_text(time: float) -> str:
    """Return a time as people write it, in UTC."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M UTC")


FAILURES = 5
"""Conversations in a row after which a judge is taken to answer nobody."""
LOOKS_EVERY = 60.0
"""Seconds between two conversations that are given to it meanwhile, to see whether it answers again."""

_MEETS_OTHERS = frozenset(("connection", "http", "rate_limit", "timeout"))
"""Kinds of failures that are likely to meet the next conversation as well."""


class Outage:
    """Whether the judges of what comes in answer, as far as the last conversations tell."""

    def __init__(self) -> None:
        self._failed = 0
        self._next_look = 0.0

    @property
    def lasts(self) -> bool:
        """Whether a judge answers nobody."""
        return self._failed >= FAILURES

    def hear(self, outcome: Outcome) -> bool:
        """Take note of a conversation; return whether it is the one by which an outage begins or ends."""
        before, scores = self.lasts, outcome.scores.values()
        failures = [score.failure for score in scores if score.failure is not None and score.failure.blame == "judge"]
        if any(failure.kind in _MEETS_OTHERS for failure in failures):
            self._failed += 1
        elif failures or any(score.usage is not None for score in scores):  # it answered, whatever it said
            self._failed = 0
        if self.lasts and not before:
            self._next_look = time.monotonic() + LOOKS_EVERY
        return self.lasts != before

    def lets_one_through(self) -> bool:
        """Return whether a conversation is to be given to a judge now."""
        now = time.monotonic()
        if self.lasts and now < self._next_look:
            return False
        self._next_look = now + LOOKS_EVERY
        return True
