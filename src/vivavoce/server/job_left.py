"""What is left of a job when nobody works on it any more: its run, and how it ended."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from vivavoce.errors import NotFound, UsageError
from vivavoce.server.job_record import JobRecord
from vivavoce.store.jobs.queue import Claimant, JobRow
from vivavoce.store.store import Store

CANCEL_LEASE = 30.0
"""Seconds in which a cancelled job is recorded as such."""


def with_new_run(store: Store, row: JobRow) -> JobRecord:
    """Return the record of a job, with the run that it began in the last moment of its server."""
    record = JobRecord.of(row)
    if record.run is None and row.new_run is not None:
        with suppress(NotFound):
            run = store.run(row.new_run)
            if run.id == row.new_run:
                return record.model_copy(update={"run": run.id, "grading": store.gradings(run.id)[0].id})
    return record


def left_by_server(store: Store, record: JobRecord) -> JobRecord:
    """Return the record of a job that nobody works on: interrupted, unless its run is finished."""
    ended: dict[str, Any] = {"status": "interrupted", "detail": record.detail or "the server stopped"}
    if record.run is not None:
        try:
            run = store.run(record.run)
            grading = store.grading(run.id, record.grading)
        except UsageError:
            return record.model_copy(update={"status": "failed", "detail": "its run has been deleted"})
        ended["done"] = store.counts(run.id)[0]
        if run.status == "finished" and grading.finished_at is not None:
            ended |= {"status": "finished", "detail": None, "verdict": grading.verdict}
        elif run.status == "finished":
            ended["done"] = len({row.key for row in store.scores(grading.id)})
    return record.model_copy(update=ended)


def current_record(store: Store, row: JobRow) -> JobRecord:
    """Return the record of a job, whose status is `waiting` if the server that ran it has ended."""
    record = JobRecord.of(row)
    if record.status != "running" or (row.owner is not None and store.jobs.is_present(row.owner)):
        return record
    return record.model_copy(update={"status": "waiting", "detail": record.detail or "its server has stopped"})


def cancel_stored_job(store: Store, job_id: str) -> JobRecord:
    """Cancel a job of a store: a server that runs it stops it, and one that no server has is over at once.

    Raises:
        NotFound: the store has no job of that id.
        StoreError: the store cannot be written.
    """
    queue = store.jobs
    row = queue.get(job_id)
    if row is None:
        raise NotFound("job", job_id)
    if JobRecord.of(row).over:
        return JobRecord.of(row)
    queue.cancel(job_id)
    by = Claimant(f"cancel-{job_id}", row.folder, CANCEL_LEASE, queue.dead(besides=""))
    claim = queue.claim(by, job_id)
    if claim is not None:
        left = left_by_server(store, with_new_run(store, claim))
        changes = left.model_dump(include={"status", "detail", "verdict", "done", "run", "grading"})
        queue.save(job_id, claim.fence, {**changes, "owner": None, "holds": None})
    row = queue.get(job_id)
    assert row is not None
    return current_record(store, row)
