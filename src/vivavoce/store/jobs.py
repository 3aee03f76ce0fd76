"""The jobs of servers as the store keeps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from typing import Any, Literal, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from sqlalchemy import ColumnElement, Connection, case, delete, func, insert, or_, select, tuple_, update

from vivavoce.records.run import Verdict
from vivavoce.store.database.database import (
    AnyRow,
    AnySelect,
    Database,
    Fenced,
    insert_rows,
    is_time,
    now_in,
    values_of,
)
from vivavoce.store.database.schema import job_events, job_inputs, jobs, text_for
from vivavoce.store.runs.claim import claimed_by_process, held_by_process

Kind = Literal["evaluation", "suite", "test", "grade", "resume", "demo"]
JobStatus = Literal["waiting", "running", "finished", "interrupted", "failed"]

OPEN = ("waiting", "running")
"""The states of jobs that are not over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job; `body` and `key` are hashes, `request` is JSON and None once nobody is to continue the job.

    The JSON begins with the `user` who submitted it, where there is one (`marked_request`).

    `starts` counts the servers that began to run it and have not ended it in good order: while it runs that includes
    the present one, and otherwise only those that crashed. `calls` and `cost` are what it has used of its limits.
    `cancels` counts how often somebody cancelled it. `owner` works on it until `lease_until`, under the number `fence`,
    and on the run `holds` at this moment. Times are seconds since the epoch.
    """

    id: str
    folder: str
    kind: Kind
    status: JobStatus = "waiting"
    created_at: float
    suite: str | None = None
    run: str | None = None
    grading: str | None = None
    planned: int | None = None
    done: int = 0
    errors: int = 0
    verdict: Verdict | None = None
    detail: str | None = None
    request: str | None = None
    key: str | None = None
    body: str = ""
    new_run: str | None = None
    starts: int = 0
    calls: int = 0
    cost: float = 0.0
    cancels: int = 0
    owner: str | None = None
    lease_until: float = 0.0
    fence: int = 0
    holds: str | None = None
    is_readable: bool = True


def job_row_of(row: AnyRow) -> JobRow:
    """Return a job from its row; one that cannot be read is a failed job whose `detail` says what is wrong with it."""
    values: dict[str, Any] = values_of(row)
    wrong = [name for name, value in values.items() if not _is_valid(name, value)]
    if not wrong:
        return JobRow(**values)
    readable = {name: value for name, value in values.items() if name not in wrong and name in _SHOWN_ALWAYS}
    detail = f"its row in the store cannot be read: wrong value of {', '.join(wrong)}"
    defaults: dict[str, Any] = {"folder": "", "kind": "suite", "created_at": 0.0}
    fields: dict[str, Any] = {**defaults, **readable, "id": str(row.id), "status": "failed", "detail": detail}
    return JobRow(**fields, is_readable=False)


_SHOWN_ALWAYS = ("folder", "kind", "created_at", "suite", "run", "grading", "key", "body")


@cache
def _checks() -> Mapping[str, TypeAdapter[Any]]:
    hints = get_type_hints(JobRow)
    return {column.name: TypeAdapter(hints[column.name], config=ConfigDict(strict=True)) for column in jobs.c}


def _is_valid(name: str, value: object) -> bool:
    try:
        _checks()[name].validate_python(value)
    except ValidationError:
        return False
    return name != "created_at" or is_time(value)


USER_MARK_CHARS = 16
"""Characters that name the user of a job."""

_MARK_START = '{"user":"'
_MARK_END = '",'
_MARKED_CHARS = len(_MARK_START) + USER_MARK_CHARS


def marked_request(request: str, user: str | None) -> str:
    """Return the JSON of a request that names its user first, where the queue finds it without reading the rest."""
    return request if user is None else f"{_MARK_START}{user}{_MARK_END}{request.removeprefix('{')}"


def unmarked_request(request: str) -> str:
    """Return the JSON of a request as it was before `marked_request`."""
    return "{" + request[_MARKED_CHARS + len(_MARK_END) :] if _user_in(request) is not None else request


def _user_in(request: str | None) -> str | None:
    """Return the user that a request, or its beginning, names."""
    is_marked = isinstance(request, str) and request.startswith(_MARK_START)
    return request[len(_MARK_START) : _MARKED_CHARS] if request and is_marked else None


KEPT = 2000
"""Events of a job that are kept."""

KEPT_BYTES = 8_000_000
"""Bytes of the events of a job that are kept; the oldest are dropped, but never the newest."""

_j = jobs.c


@dataclass(frozen=True, slots=True)
class Claimant:
    """A server that claims jobs: its name, the folder that it serves, and the seconds of a lease.

    `dead` are the servers that have ended with jobs of theirs not over. It works on at most `user_limit` jobs of one
    user at a time, where that is given, so that a place stays free for others.
    """

    name: str
    folder: str
    lease: float
    dead: Collection[str] = ()
    user_limit: int | None = None


@dataclass(frozen=True, slots=True)
class JobQueue:
    """The jobs of a store."""

    database: Database

    def add(self, job: JobRow, content: str | None = None) -> JobRow | None:
        """Add a job with the conversations of its request; return the job that has the same key, None if there is none.

        Raises:
            StoreError: the store cannot be written.
        """
        values = {column.name: getattr(job, column.name) for column in jobs.c}
        with self.database.writing() as connection:
            text = text_for(connection.dialect)
            row = tuple(text(value) if isinstance(value, str) else value for value in values.values())
            insert_rows(connection, jobs, tuple(values), [row], once=True)
            if connection.execute(select(_j.id).where(_j.id == job.id)).first() is None:
                mine = (_j.folder == job.folder) & (_j.key == job.key)
                return job_row_of(connection.execute(select(jobs).where(mine)).one())
            if content is not None:
                connection.execute(insert(job_inputs).values(job_id=job.id, content=content))
        return None

    def get(self, job_id: str) -> JobRow | None:
        """Return a job, None if there is none of that id."""
        return next(iter(self._rows(select(jobs).where(_j.id == job_id))), None)

    def with_key(self, folder: str, key: str) -> JobRow | None:
        """Return the job of a folder that was submitted with a key."""
        return next(iter(self._rows(select(jobs).where(_j.folder == folder, _j.key == key))), None)

    def list(self, after: JobRow | None, limit: int) -> Sequence[JobRow]:
        """Return the newest jobs, newest first; those before the job `after`, where that is given."""
        query = select(jobs).order_by(_j.created_at.desc(), _j.id.desc()).limit(limit)
        if after is not None:
            query = query.where(tuple_(_j.created_at, _j.id) < (after.created_at, after.id))
        return self._rows(query)

    def of_run(self, run_id: str) -> Sequence[JobRow]:
        """Return the jobs on a run, newest first."""
        return self._rows(select(jobs).where(_j.run == run_id).order_by(_j.created_at.desc(), _j.id.desc()))

    def unfinished(self, user: str | None = None) -> int:
        """Return how many jobs are not over, of all users or of one."""
        query = select(func.count()).select_from(jobs).where(_j.status.in_(OPEN))
        if user is not None:
            query = query.where(func.substr(_j.request, 1, _MARKED_CHARS) == f"{_MARK_START}{user}")
        with self.database.connected() as connection:
            return connection.execute(query).scalar_one()

    def present(self, name: str) -> AbstractContextManager[None]:
        """Show other servers that this process lives, as long as the block lasts.

        Raises:
            StoreError: the store cannot be written.
        """
        return claimed_by_process(self.database, name)

    def is_present(self, name: str) -> bool:
        """Return whether a server lives."""
        return held_by_process(self.database, name)

    def dead(self, besides: str) -> set[str]:
        """Return the servers that have ended with jobs of theirs not over."""
        query = select(_j.owner).where(_j.status.in_(OPEN), _j.owner.is_not(None), _j.owner != besides).distinct()
        with self.database.connected() as connection:
            owners = connection.execute(query).scalars().all()
        return {owner for owner in owners if owner and not self.is_present(owner)}

    def claimable(self, by: Claimant, *, fresh: bool = False) -> bool:
        """Return whether a job of the folder can be claimed; with `fresh`, one during which no server has crashed."""
        with self.database.connected() as connection:
            return bool(_turns(connection, by, fresh=fresh))

    def claim(self, by: Claimant, job_id: str | None = None, *, fresh: bool = False) -> JobRow | None:
        """Claim the free job of a folder whose turn it is, or a certain one of any folder; None if there is none.

        A job whose row cannot be read is recorded as failed in passing. The next one is the oldest job of the users
        with the fewest jobs at work. With `fresh`, claim only a job during which no server has crashed.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            for turn in _turns(connection, by, fresh=fresh) if job_id is None else [job_id]:
                query = select(jobs).where(*_free(connection, by, turn)).with_for_update(skip_locked=True)
                row = connection.execute(query).first()
                if row is not None and not (job := job_row_of(row)).is_readable:
                    failed = {"status": "failed", "detail": job.detail, "request": None, "owner": None, "holds": None}
                    connection.execute(update(jobs).where(_j.id == row.id).values(failed))
                elif row is not None:
                    until = now_in(connection) + by.lease
                    owned = {"owner": by.name, "lease_until": until, "fence": row.fence + 1, "holds": None}
                    connection.execute(update(jobs).where(_j.id == row.id).values(owned))
                    return replace(job_row_of(row), owner=by.name, fence=row.fence + 1, holds=None)
        return None

    def renew(self, name: str, seconds: float) -> None:
        """Renew the leases of a server.

        Raises:
            StoreError: the store cannot be written.
        """
        mine = (_j.owner == name) & _j.status.in_(OPEN)
        with self.database.writing() as connection:
            connection.execute(update(jobs).where(mine).values(lease_until=now_in(connection) + seconds))

    def owned(self, name: str) -> dict[str, tuple[int, int]]:
        """Return the fence of each job of a server, and how often it was cancelled."""
        query = select(_j.id, _j.fence, _j.cancels).where(_j.owner == name, _j.status.in_(OPEN))
        with self.database.connected() as connection:
            return {row.id: (row.fence, row.cancels) for row in connection.execute(query)}

    def save(
        self, job_id: str, fence: int, values: Mapping[str, Any], events: str | None = None, last: int = 0
    ) -> None:
        """Save what has changed in a job, and its new events as JSON; `last` is the number of the last event.

        Raises:
            Fenced: another server has claimed the job; nothing was saved.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            mine = update(jobs).where(_j.id == job_id, _j.fence == fence).values(**values)
            if not connection.execute(mine).rowcount:
                raise Fenced(f"job {job_id} was taken over by another server; this server stops writing")
            if events is not None:
                connection.execute(insert(job_events).values(job_id=job_id, last=last, events=events))
                old = (job_events.c.job_id == job_id) & (job_events.c.last <= last - KEPT)
                connection.execute(delete(job_events).where(old))
                _drop_long_events(connection, job_id)
            if values.get("status") == "finished":
                connection.execute(delete(job_inputs).where(job_inputs.c.job_id == job_id))

    def cancel(self, job_id: str) -> int:
        """Record that nobody is to continue a job, and return how often it was cancelled; not of one that is over.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            values = {"request": None, "detail": "cancelled", "cancels": _j.cancels + 1}
            connection.execute(update(jobs).where(_j.id == job_id, _j.status.in_(OPEN)).values(values))
            return connection.execute(select(_j.cancels).where(_j.id == job_id)).scalar_one()

    def events(self, job_id: str, after: int) -> list[str]:
        """Return the events of a job as JSON, in rows of several; the first row may begin before those asked for."""
        e = job_events.c
        query = select(e.events).where(e.job_id == job_id, e.last > after).order_by(e.last)
        with self.database.connected() as connection:
            return list(connection.execute(query).scalars())

    def forget_events(self, job_id: str) -> int:
        """Delete the events of a job, and return the number of the last one, 0 if there is none."""
        mine = job_events.c.job_id == job_id
        with self.database.writing() as connection:
            last = connection.execute(select(func.max(job_events.c.last)).where(mine)).scalar()
            connection.execute(delete(job_events).where(mine))
        return last or 0

    def inputs(self, job: JobRow) -> dict[str, str]:
        """Return the conversations that came with a job and with the earlier jobs on its run, by job."""
        mine = _j.id == job.id if job.run is None else or_(_j.id == job.id, _j.run == job.run)
        query = select(job_inputs).where(job_inputs.c.job_id.in_(select(_j.id).where(mine)))
        with self.database.connected() as connection:
            return {row.job_id: row.content for row in connection.execute(query)}

    def _rows(self, query: AnySelect) -> Sequence[JobRow]:
        with self.database.connected() as connection:
            return [job_row_of(row) for row in connection.execute(query)]


def _drop_long_events(connection: Connection, job_id: str) -> None:
    """Delete the oldest events of a job where all of them together are too long."""
    e = job_events.c
    sizes = select(e.last, func.length(e.events)).where(e.job_id == job_id).order_by(e.last.desc())
    total = 0
    for place, (last, size) in enumerate(connection.execute(sizes).all()):
        total += size
        if place and total > KEPT_BYTES:
            connection.execute(delete(job_events).where(e.job_id == job_id, e.last <= last))
            return


def _free(connection: Connection, by: Claimant, job_id: str | None = None) -> list[ColumnElement[bool]]:
    """Return the conditions on a job that a server may claim."""
    which = _j.folder == by.folder if job_id is None else _j.id == job_id
    free = or_(_j.owner.is_(None), _j.lease_until < now_in(connection), _j.owner.in_(by.dead))
    return [_j.status.in_(OPEN), which, free]


def _turns(connection: Connection, by: Claimant, *, fresh: bool) -> list[str]:
    """Return the jobs of a folder that a server may claim, in the order in which they have their turn."""
    status, _, free = _free(connection, by)
    columns = (_j.id, _j.owner, _j.starts, case((free, 1), else_=0).label("is_free"))
    marked = func.substr(_j.request, 1, _MARKED_CHARS).label("marked")
    query = select(*columns, marked).where(status, _j.folder == by.folder).order_by(_j.created_at, _j.id)
    rows = connection.execute(query).all()
    at_work = Counter(_user_in(row.marked) for row in rows if not row.is_free)
    here = Counter(_user_in(row.marked) for row in rows if not row.is_free and row.owner == by.name)
    turns: list[tuple[int, str]] = []
    for row in rows:
        user = _user_in(row.marked)
        is_full = user is not None and by.user_limit is not None and here[user] >= by.user_limit
        if row.is_free and not is_full and not (fresh and row.starts):
            turns.append((at_work[user], row.id))
    return [job_id for _, job_id in sorted(turns, key=itemgetter(0))]  # the oldest of equals stays first
