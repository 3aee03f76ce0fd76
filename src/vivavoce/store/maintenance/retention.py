"""The content of a store, and deleting old finished runs with everything that belongs to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, text

from vivavoce.store.access.audit import note
from vivavoce.store.database.database import Database, on_postgresql
from vivavoce.store.database.schema import (
    HEAD,
    attempts,
    comments,
    decisions,
    gradings,
    labels,
    metadata,
    queue_items,
    queues,
    replaced,
    replies,
    runs,
    sample_index,
    scores,
    turns,
)
from vivavoce.store.database.server_tables import job_events, job_inputs, jobs
from vivavoce.store.search.search import forget, read_again

_SIZE = text("SELECT pg_total_relation_size(to_regclass(:name))")


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a store: rows by table, its size in bytes, the version of its schema, and its place."""

    place: str
    schema: str
    bytes: int
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class Collected:
    """What was deleted: the ids of runs, and how many replies; `interrupted` are the interrupted runs that remain."""

    runs: tuple[str, ...]
    replies: int
    interrupted: tuple[str, ...] = ()


def contents(database: Database) -> Contents:
    """Return what is in a store."""
    kept = (runs, gradings, attempts, turns, scores, labels, comments, replies)
    with database.connected() as connection:
        rows = {table.name: _count(connection, table) for table in kept}
        if on_postgresql(connection):
            sizes = [_SIZE.bindparams(name=n) for n in metadata.tables]
            size = sum(connection.execute(one).scalar_one() for one in sizes)
        else:
            facts = [text("PRAGMA page_count"), text("PRAGMA page_size")]
            size = math.prod(connection.execute(fact).scalar_one() for fact in facts)
    return Contents(database.place, HEAD, size, rows)


def finished_before(connection: Connection, *, keep_last: int | None, before: float | None) -> list[str]:
    """Return the finished runs that are not among the newest, or that ended before a time; oldest first.

    Running or interrupted runs are never among them.
    """
    r = runs.c
    query = select(r.id).where(r.status == "finished").order_by(r.started_at.desc(), r.id.desc())
    if before is not None:
        query = query.where(r.finished_at < before)
    ids = connection.execute(query.offset(keep_last or 0)).scalars().all()
    return [*reversed(ids)]


def delete_run(connection: Connection, run_id: str, actor: str) -> None:
    """Delete a run with everything that belongs to it, and log the actor; the caller commits."""
    mine = select(attempts.c.id).where(attempts.c.run_id == run_id)
    suite = connection.execute(select(runs.c.suite).where(runs.c.id == run_id)).scalar()
    count = connection.execute(select(func.count()).select_from(mine.subquery())).scalar_one()
    note(connection, actor, "run.delete", run_id, {"suite": suite, "conversations": count})
    forget(connection, run_id)
    for table in (labels, comments, decisions, queue_items, scores, turns):
        connection.execute(delete(table).where(table.c.attempt_id.in_(mine)))
    sets = select(gradings.c.id).where(gradings.c.run_id == run_id)
    connection.execute(delete(sample_index).where(sample_index.c.grading_id.in_(sets)))
    its_jobs = select(jobs.c.id).where(jobs.c.run == run_id)
    for table in (job_events, job_inputs):  # they hold what was said
        connection.execute(delete(table).where(table.c.job_id.in_(its_jobs)))
    for table in (queues, attempts, gradings, replaced):
        connection.execute(delete(table).where(table.c.run_id == run_id))
    connection.execute(delete(runs).where(runs.c.id == run_id))


def old_replies(run_ids: Sequence[str], before: float | None) -> ColumnElement[bool]:
    """Return the replies stored before a time and before the start of every run except these."""
    oldest = select(func.min(runs.c.started_at)).where(runs.c.id.not_in(run_ids)).scalar_subquery()
    kept = replies.c.created_at < oldest
    return kept if before is None else kept & (replies.c.created_at < before)


def collect(
    connection: Connection,
    held: Callable[[str], bool],
    *,
    keep_last: int | None,
    before: float | None,
    dry_run: bool,
    actor: str,
) -> Collected:
    """Delete the runs of `finished_before` and the replies older than all other runs; the caller commits.

    A run that is `held`, for example while it is graded again, is not deleted.
    """
    found = finished_before(connection, keep_last=keep_last, before=before)
    run_ids = [run_id for run_id in found if not held(run_id)]
    old = old_replies(run_ids, before)
    count = connection.execute(select(func.count()).select_from(replies).where(old)).scalar_one()
    if not dry_run:
        connection.execute(delete(replies).where(old))
        for run_id in run_ids:
            delete_run(connection, run_id, actor)
        read_again(connection)
    return Collected(tuple(run_ids), count)


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()
