"""`Maintenance`: what is in a store, deleting runs, and copying all of it into another store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from vivavoce.errors import NotFound
from vivavoce.store.database.database import Database, for_writing, on_postgresql
from vivavoce.store.database.schema import runs
from vivavoce.store.labels.labels import copy_labels
from vivavoce.store.maintenance.copying import Copied, Listener, copy_run
from vivavoce.store.maintenance.retention import Collected, Contents, collect, contents, delete_run
from vivavoce.store.replies import ReplyStore
from vivavoce.store.runs.claim import claimed, held
from vivavoce.store.runs.naming import find
from vivavoce.store.search.search import read_again

if TYPE_CHECKING:
    from vivavoce.store.store import Store


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Looking after a store."""

    database: Database

    def contents(self) -> Contents:
        """Return what is in it, and how large it is."""
        return contents(self.database)

    def delete_run(self, run_id: str, actor: str) -> None:
        """Delete a run with everything that belongs to it, and note that `actor` did; its room is used again.

        Raises:
            Claimed: a process works on it.
            UsageError: there is no run of that id.
            StoreError: the store cannot be written.
        """
        with self.database.connected() as connection:
            found = find(connection, runs, runs.c.started_at, run_id)
        if found.id != run_id:
            raise NotFound("run", run_id, hint="; name in full what is to be deleted")
        with claimed(self.database, run_id), self.database.writing() as connection:
            delete_run(connection, run_id, actor)
            read_again(connection)

    def collect(
        self, *, keep_last: int | None = None, before: float | None = None, dry_run: bool = False, actor: str = ""
    ) -> Collected:
        """Delete finished runs but the newest `keep_last`, or those that ended `before` a time, all or none.

        A run that a process works on stays. Replies that were kept before any run that is left began are deleted as
        well; a file gets smaller. That `actor` did it is noted for each run.

        Raises:
            StoreError: the store cannot be written.
        """

        def is_held(run_id: str) -> bool:
            return held(self.database, run_id)

        with self.database.connected() as connection:
            with for_writing(connection).begin():
                gone = collect(connection, is_held, keep_last=keep_last, before=before, dry_run=dry_run, actor=actor)
            if gone.runs and not dry_run and not on_postgresql(connection):
                connection.connection.cursor().execute("VACUUM")
        return gone

    def copy_to(self, target: Store, tell: Listener) -> Copied:
        """Copy every run, label and reply that another store lacks; `tell` hears how far it is.

        A copy that was stopped, or is older, is completed by another. Attempts get new numbers and nothing else.

        Raises:
            UsageError: another run has the id of one of ours.
            StoreError: one of them cannot be read, or the other one not be written.
        """
        there = target.database
        with self.database.connected() as connection:
            ids = connection.execute(select(runs.c.id).order_by(runs.c.started_at, runs.c.id)).scalars().all()
        copies = [copy_run(self.database, there, run_id, tell) for run_id in ids]
        with self.database.connected() as read, there.writing() as written:
            labelled = copy_labels(read, written)
        return Copied(
            runs=sum(new for new, _ in copies),
            completed=sum(bool(number) and not new for new, number in copies),
            attempts=sum(number for _, number in copies),
            replies=ReplyStore(there).add(ReplyStore(self.database).all()),
            labels=labelled,
        )
