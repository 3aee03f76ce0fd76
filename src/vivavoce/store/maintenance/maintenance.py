"""`Maintenance`: the content of a store, deleting runs, and copying everything into another store."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from vivavoce.errors import NotFound
from vivavoce.store.browse.watches import copy_watches
from vivavoce.store.comments.comments import copy_comments
from vivavoce.store.database.database import Database, for_writing, on_postgresql
from vivavoce.store.database.schema import audit, replaced, runs
from vivavoce.store.database.server_tables import jobs, tokens, webhooks
from vivavoce.store.labels.calibrations import copy_calibrations
from vivavoce.store.labels.decisions import copy_decisions
from vivavoce.store.labels.labels import copy_labels
from vivavoce.store.labels.queues import copy_queues
from vivavoce.store.maintenance.copying import Copied, Listener, copy_run
from vivavoce.store.maintenance.retention import Collected, Contents, collect, contents, delete_run
from vivavoce.store.replies import ReplyStore
from vivavoce.store.runs.claim import claimed, held
from vivavoce.store.runs.naming import find
from vivavoce.store.search.search import read_again
from vivavoce.store.views.views import copy_views

if TYPE_CHECKING:
    from vivavoce.store.store import Store


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
