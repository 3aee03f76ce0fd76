"""Maintenance of a store: its content, deleting old runs, backups, and restoring one."""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, text

from vivavoce.errors import NotFound, StoreError, UsageError
from vivavoce.store.audit import note
from vivavoce.store.calibrations import copy_calibrations
from vivavoce.store.comments import copy_comments
from vivavoce.store.database.address import Place, is_postgresql, path_of
from vivavoce.store.database.database import Database, for_writing, meaning, on_postgresql, plain_errors
from vivavoce.store.database.schema import (
    HEAD,
    attempts,
    audit,
    comments,
    decisions,
    gradings,
    job_events,
    job_inputs,
    jobs,
    labels,
    metadata,
    queue_items,
    queues,
    replaced,
    replies,
    runs,
    sample_index,
    scores,
    tokens,
    turns,
    webhooks,
)
from vivavoce.store.database.sqlite import check_file
from vivavoce.store.labels import copy_decisions, copy_labels
from vivavoce.store.maintenance.copying import Copied, Listener, copy_run
from vivavoce.store.maintenance.migration import check_unused, migration_plan
from vivavoce.store.queues import copy_queues
from vivavoce.store.replies import ReplyStore
from vivavoce.store.runs.claim import claimed, held
from vivavoce.store.runs.naming import find
from vivavoce.store.search.search import forget, read_again
from vivavoce.store.views import copy_views
from vivavoce.store.watches import copy_watches

if TYPE_CHECKING:
    from vivavoce.store.store import Store

RESTORED = "the store was restored from a backup; to continue, resume the run or submit the job again"
"""The detail of a job that was open in a backup."""


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


_LEFT_OUT = {
    "token": tokens,
    "audit record": audit,
    "job": jobs,
    "webhook": webhooks,
    "retried conversation": replaced,
}


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Maintenance of a store."""

    database: Database

    def contents(self) -> Contents:
        """Return its content and its size."""
        return contents(self.database)

    def delete_run(self, run_id: str, actor: str) -> None:
        """Delete a run with everything that belongs to it, and log the `actor`; its space is reused.

        Raises:
            Claimed: a process is working on it.
            UsageError: there is no run of that id.
            StoreError: the store cannot be written.
        """
        with self.database.connected() as connection:
            found = find(connection, runs, runs.c.started_at, run_id)
        if found.id != run_id:
            raise NotFound("run", run_id, hint="; a deletion needs the full id")
        with claimed(self.database, run_id), self.database.writing() as connection:
            delete_run(connection, run_id, actor)
            read_again(connection)

    def collect(
        self, *, keep_last: int | None = None, before: float | None = None, dry_run: bool = False, actor: str = ""
    ) -> Collected:
        """Delete finished runs except the newest `keep_last`, or those that ended `before` a time; all or none.

        A run in use is never deleted. Cached replies older than every remaining run are deleted as well; a file becomes
        smaller. The `actor` is logged for each run.

        Raises:
            StoreError: the store cannot be written.
        """

        def is_held(run_id: str) -> bool:
            return held(self.database, run_id)

        with self.database.apart() as connection:
            with for_writing(connection).begin():
                gone = collect(connection, is_held, keep_last=keep_last, before=before, dry_run=dry_run, actor=actor)
            if gone.runs and not dry_run and not on_postgresql(connection):
                connection.connection.cursor().execute("VACUUM")
        left = self._interrupted()
        return replace(gone, interrupted=tuple(left))

    def _interrupted(self) -> list[str]:
        """Return the runs that did not finish and that no process works on, oldest first."""
        query = select(runs.c.id).where(runs.c.status != "finished").order_by(runs.c.started_at, runs.c.id)
        with self.database.connected() as connection:
            unfinished = connection.execute(query).scalars().all()
        return [run_id for run_id in unfinished if not held(self.database, run_id)]

    def copy_to(self, target: Store, progress: Listener) -> Copied:
        """Copy runs, what people made of them, replies and watches that another store lacks, and call `progress`.

        A further copy completes an interrupted or older one. Only the numbers of attempts change. What belongs to the
        servers of a store stays: jobs, tokens, the audit log, webhooks, queues that people began for themselves, and
        attempts that were tried again.

        Raises:
            UsageError: a different run has the id of one of ours. StoreError: one store cannot be read, or the other
            cannot be written.
        """
        there = target.database
        with self.database.connected() as connection:
            ids = connection.execute(select(runs.c.id).order_by(runs.c.started_at, runs.c.id)).scalars().all()
        copies = [copy_run(self.database, there, run_id, progress) for run_id in ids]
        with self.database.connected() as source, there.writing() as destination:
            labelled = copy_labels(source, destination)
            copy_watches(source, destination)
            remarked = copy_comments(source, destination)
            decided, assigned = copy_decisions(source, destination), copy_queues(source, destination)
            calibrated, viewed = copy_calibrations(source, destination), copy_views(source, destination)
        return Copied(
            runs=sum(new for new, _ in copies),
            completed=sum(bool(number) and not new for new, number in copies),
            attempts=sum(number for _, number in copies),
            replies=ReplyStore(there).add(ReplyStore(self.database).all()),
            labels=labelled,
            comments=remarked,
            decisions=decided,
            queues=assigned,
            views=viewed,
            calibrations=calibrated,
            left_out=tuple(self._left_out()),
        )

    def _left_out(self) -> Generator[tuple[str, int]]:
        """Yield what a copy leaves out and how many of each there are."""
        with self.database.connected() as connection:
            for name, table in _LEFT_OUT.items():
                number = connection.execute(select(func.count()).select_from(table)).scalar_one()
                if number:
                    yield name, number


def backup_store(address: str, target: Path) -> int:
    """Copy the file of a store, completely or not at all, and return the size of the copy in bytes.

    Other processes may write meanwhile; the copy is the store at one moment.

    Raises:
        UsageError: the store is a database of PostgreSQL, there is none, or the target exists.
        StoreError: the store cannot be read, or the copy cannot be written.
    """
    place = Place(address)
    if is_postgresql(place):
        raise UsageError(f"{place}: back up a PostgreSQL store with its own program: pg_dump -Fc -f FILE '{place}'")
    migration_plan(address)  # it is a store
    if target.exists():
        raise UsageError(f"{target} exists; name a new file")
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    folders = [folder for folder in target.parents if not folder.exists()]
    try:
        with suppress(FileExistsError):
            target.parent.mkdir(parents=True)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(path_of(place), new, label=target)
        os.replace(new, target)
    except OSError as error:
        raise StoreError(f"{target}: the backup cannot be written: {error.strerror or error}") from error
    finally:
        _remove(new)
        if not target.exists():
            for folder in folders:
                with suppress(OSError):
                    folder.rmdir()
    return target.stat().st_size


def backup_path(address: str, reason: str) -> Path:
    """Return the path for a backup that is made next to a store before it is changed."""
    path = path_of(Place(address))
    return path.with_name(f"{path.name}.{reason}-{time.strftime('%Y%m%d-%H%M%S')}")


def check_backup(source: Path) -> str:
    """Return the schema of a backup.

    Raises:
        UsageError: it is not a store.
        StoreError: it is damaged, or belongs to a newer vivavoce.
    """
    check_file(source, create=False)
    version = migration_plan(str(source)).version
    with plain_errors(str(source)), closing(sqlite3.connect(source)) as connection:
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise StoreError(f"{source}: the file is damaged: {problem}")
    return version


def restore_store(source: Path, address: str) -> int:
    """Replace the content of a store by that of a backup, completely or not at all.

    Jobs that were open when the backup was made are interrupted, so that no server starts them unasked; return how many
    these are.

    Raises:
        UsageError: the store is a database of PostgreSQL, or the backup is not a store.
        StoreInUse: other processes use the store; nothing was changed.
        StoreError: the backup is damaged, or the store cannot be written.
    """
    place = Place(address)
    if is_postgresql(place):
        raise UsageError(
            f"{place}: restore a PostgreSQL store with its own program: "
            f"pg_restore --clean --if-exists -d '{place}' FILE"
        )
    check_backup(source)
    check_unused(place)
    path = path_of(place)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: its folder cannot be created: {error.strerror}") from error
    is_new = not path.exists()
    closed = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        _copy(source, closed, label=path)
        with plain_errors(place):
            interrupted = _interrupt_jobs(closed)
            _set_page_size(closed, path)
        _copy(closed, path, label=path)
    except BaseException:
        if is_new:
            _remove(path)
        raise
    finally:
        _remove(closed)
    return interrupted


def _interrupt_jobs(path: Path) -> int:
    """Close the open jobs of a file of any version, and return how many there were."""
    values = {"status": "interrupted", "detail": RESTORED, "request": None, "owner": None, "holds": None}
    with _open_file(path) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(jobs)")}
        if not columns:  # an older vivavoce had no jobs
            return 0
        changes = {name: value for name, value in values.items() if name in columns}
        assignments = ", ".join(f"{name} = ?" for name in changes)
        cursor = connection.execute(
            f"UPDATE jobs SET {assignments} WHERE status NOT IN ('finished', 'interrupted', 'failed')",
            list(changes.values()),
        )
        connection.commit()
        return cursor.rowcount


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


_UNREADABLE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
)
"""Errors of a copy that are about the file it reads; all others are about the file it writes."""


def _copy(source: Path, target: Path, *, label: Path) -> None:
    """Copy one file over another, which errors call `label`.

    Raises:
        StoreError: the source cannot be read, or the target cannot be written.
    """
    with (
        plain_errors(str(source)),
        _open_file(source) as reading,
        plain_errors(str(label)),
        _open_file(target) as writing,
    ):
        try:
            reading.backup(writing)
            writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            code = error.sqlite_errorcode
            if code in _UNREADABLE or code & 0xFF in _UNREADABLE:
                raise StoreError(f"{source}: {meaning(error)}") from error
            if code == sqlite3.SQLITE_FULL:
                raise StoreError(f"{label}: {error}: make room and repeat the command") from error
            raise


def _set_page_size(path: Path, other: Path) -> None:
    """Give a file the page size of another, which SQLite cannot change while it has a log of writes."""
    if not other.exists():
        return
    with _open_file(other) as present, _open_file(path) as connection:
        size, own_size = (file.execute("PRAGMA page_size").fetchone()[0] for file in (present, connection))
        if size != own_size:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute(f"PRAGMA page_size={size}")
            connection.execute("VACUUM")


@contextmanager
def _open_file(path: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        yield connection
