"""The status of a run: a run that is recorded as running is interrupted if no process works on it.

A process that is killed cannot record that its run is over. The claim on the run ends with the process, so the claim
decides. Everything that shows a run asks here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from sqlalchemy import select

from vivavoce.records.run import Run
from vivavoce.store.browse.listing import RunEntry
from vivavoce.store.database.database import Database, plain_errors
from vivavoce.store.database.schema import runs
from vivavoce.store.runs.claim import held

R = TypeVar("R", Run, RunEntry)


def with_current_status(database: Database, records: Sequence[R]) -> list[R]:
    """Return runs as they are now: those that no process works on any more are interrupted.

    Raises:
        StoreError: the store cannot be read.
    """
    dead = dead_runs(database, [record.id for record in records if record.status == "running"])
    return [record.model_copy(update={"status": "interrupted"}) if record.id in dead else record for record in records]


def dead_runs(database: Database, run_ids: Iterable[str]) -> set[str]:
    """Return which runs are recorded as running although no process works on them.

    The record is read again after the claim, because a run may end in between.

    Raises:
        StoreError: the store cannot be read.
    """
    free = [run_id for run_id in run_ids if not held(database, run_id)]
    if not free:
        return set()
    query = select(runs.c.id).where(runs.c.id.in_(free), runs.c.status == "running")
    with plain_errors(database.place), database.engine.connect() as connection:
        return set(connection.execute(query).scalars())


def all_dead_runs(database: Database) -> set[str]:
    """Return every run that is recorded as running although no process works on it.

    Raises:
        StoreError: the store cannot be read.
    """
    with database.connected() as connection:
        running = connection.execute(select(runs.c.id).where(runs.c.status == "running")).scalars().all()
    return dead_runs(database, running)
