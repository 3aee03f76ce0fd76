"""`JobWork`: the jobs that a server has claimed, the thread that runs them, and the one that looks after the claims.

The second thread claims jobs while there are free places, renews the leases, saves progress and events, and learns
which jobs somebody has cancelled at another server or that another server has taken over. User code that blocks the
first one does not hold it up. When the first thread has been blocked for too long, the second one gives up its jobs and
continues with a new thread.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from vivavoce.errors import StoreError, VivavoceError
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.loops import LoopThread
from vivavoce.records.redaction import keys_of_environment, without_keys
from vivavoce.report.strict_json import strict_json
from vivavoce.run.execution import Execution
from vivavoce.server.event_log import LogLevel, log
from vivavoce.server.job import Job
from vivavoce.server.job_files import JobFiles
from vivavoce.server.job_left import left_by_server, with_new_run
from vivavoce.server.job_record import JobEvent
from vivavoce.server.job_requests import Beginning, KeptRequest, ResumeJob
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.database.fence import Fence, Fenced
from vivavoce.store.jobs.queue import KEPT, Claimant, JobRow
from vivavoce.store.store import Store

AT_ONCE = 4
"""Jobs that one server works on at a time; others wait for it, or for another server."""

MAX_CRASHES = 2
"""Servers that may crash while they run a job; after that it is not continued."""

GRACE = 5.0
"""Seconds that conversations in progress have when the server stops."""

CANCEL_GRACE = 2.0
"""Seconds that cancelled conversations have after that; what still runs then is abandoned."""

TURN = 0.5
"""Seconds between two looks at the store."""

REMEMBERED = 100
"""Jobs that have ended here and are still shown from memory."""

STOPPED = "the server stopped; the job continues when the server is started again"
CRASHED = "the server stopped twice while it ran this job; to try again, resume it or submit it again"

KEPT_REQUEST: TypeAdapter[KeptRequest] = TypeAdapter(KeptRequest)


class JobWork:
    """The work of one server; safe for use from any thread."""

    def __init__(self, store: Store, policy: ServerPolicy, files: JobFiles) -> None:
        self._store, self._policy, self._files = store, policy, files
        self._queue = store.jobs
        self._name = f"server-{secrets.token_hex(8)}"
        self._folder = str(policy.workspace.resolve())
        self._jobs: dict[str, Job] = {}
        self._rows: dict[str, JobRow] = {}
        self._at_work: set[str] = set()
        self._presence = ExitStack()
        self._renewed = 0.0
        self._missing: dict[str, float] = {}
        self._claiming, self._saving = threading.RLock(), threading.RLock()
        self._news = threading.Event()
        self._closing = self._closed = False
        self._loop: LoopThread | None = None
        self._unanswered = 0
        self._store_failed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look for jobs; a second call has them looked for at once."""
        with self._claiming:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._keep, name="vivavoce-keeper", daemon=True)
                self._thread.start()
        self._news.set()

    def job(self, job_id: str) -> Job | None:
        """Return a job that is, or was, at work here, None where the store knows more about it."""
        job = self._jobs.get(job_id)
        return None if job is None or job.lost else job

    def cancel(self, job_id: str, times: int) -> None:
        """Stop a job that was cancelled so many times in all: at once if it is at work here, or if nobody has it."""
        job = self.job(job_id)
        if job is not None:
            self._stop(job, times)
            return
        with self._claiming:
            if not self._closing:
                row = self._queue.claim(self._claimant(), job_id)
                if row is not None:
                    self._take(row)

    def close(self) -> None:
        """Stop every job cleanly: conversations in progress get a moment to finish, and finished ones are stored.

        A job that does not stop in time is abandoned; it counts as one during which the server crashed.
        """
        with self._claiming:
            self._closing = True
            loop, self._loop = self._loop, None
        is_stopped = loop is None or loop.run_within(self._stop_all(), GRACE + 2 * CANCEL_GRACE)
        self._closed = True
        self._news.set()
        if self._thread is not None:
            self._thread.join(None if is_stopped else CANCEL_GRACE)
        if loop is not None and is_stopped:
            loop.stop()
        self._presence.close()

    # What follows runs in the thread that looks after the claims.

    def _keep(self) -> None:
        while not self._closed:
            self._try_turn()
            self._news.wait(TURN)
            self._news.clear()

    def _try_turn(self) -> None:
        """Take a turn; where the store cannot be used now, the next turn tries again."""
        try:
            self._turn()
        except StoreError as error:
            if not self._store_failed:
                log("error", "store.failed", detail=str(error))
            self._store_failed = True
            return
        if self._store_failed:
            log("info", "store.works_again")
        self._store_failed = False

    def _turn(self) -> None:
        if self._at_work:
            if self._is_hung():
                self._abandon()
            self._look_after_leases()
        for job in list(self._jobs.values()):
            with self._saving, suppress(Fenced):  # it is lost by now, and its work here ends
                if job.unsaved and not job.lost:
                    self._save(job)
        with self._claiming:
            while not self._closing and len(self._at_work) < AT_ONCE and self._claim_one():
                pass

    def _is_hung(self) -> bool:
        """Return whether the thread of the jobs has not answered for too many turns.

        Turns are counted, not seconds: they do not pass while the whole process stands still.
        """
        loop = self._loop
        if loop is None:
            return False
        self._unanswered += 1
        if self._unanswered == 1:
            loop.call(self._answer)
        return self._unanswered > self._policy.hang_seconds / TURN

    def _answer(self) -> None:
        self._unanswered = 0

    def _abandon(self) -> None:
        """Give up the jobs of a thread that does not answer, so that this or another server takes them again."""
        with self._claiming:
            if self._closing:
                return
            self._loop, self._unanswered = None, 0
            for job_id in list(self._at_work):
                job = self._jobs[job_id]
                with suppress(Fenced):
                    self._queue.save(job_id, job.fence, {"owner": None, "holds": None})
                job.abandon()
                _log_job("error", "hung", job)
                self._at_work.discard(job_id)

    def _look_after_leases(self) -> None:
        self._be_present()
        if time.monotonic() > self._renewed + self._policy.lease / 4:
            self._queue.renew(self._name, self._policy.lease)
            self._renewed = time.monotonic()
        owned = self._queue.owned(self._name)
        for job_id in list(self._at_work):
            job = self._jobs.get(job_id)
            fence, cancels = owned.get(job_id, (-1, 0))
            if job is None or job.over:
                continue
            if fence != job.fence:
                self._lose(job)
            else:
                self._stop(job, cancels)
        with self._claiming:
            for job_id in owned.keys() - self._jobs.keys():  # something broke before it began here
                self._queue.save(job_id, owned[job_id][0], {"owner": None})

    def _claim_one(self) -> bool:
        """Claim a job and begin it; of those during which a server crashed, only one runs at a time.

        So the second crash is counted against the job that caused it, and not against its neighbors.
        """
        by = self._claimant()
        fresh = any(self._jobs[job_id].starts > 1 for job_id in list(self._at_work))
        if not self._queue.claimable(by, fresh=fresh):
            return False
        self._be_present()
        row = self._queue.claim(by, fresh=fresh)
        if row is not None:
            self._take(row)
        return row is not None

    def _claimant(self) -> Claimant:
        """Return this server, with those that were not there at two looks: a database may lose sight for a moment."""
        now = time.monotonic()
        self._missing = {name: self._missing.get(name, now) for name in self._queue.dead(self._name)}
        dead = {name for name, since in self._missing.items() if now - since >= TURN}
        return Claimant(self._name, self._folder, self._policy.lease, dead)

    def _be_present(self) -> None:
        """Show that this server lives; a database may have lost sight of it."""
        if not self._queue.is_present(self._name):
            self._presence.close()
            self._presence.enter_context(self._queue.present(self._name))

    def _take(self, row: JobRow) -> None:
        """Begin or continue a job that was claimed, or record why not."""
        last = self._queue.forget_events(row.id)
        left = left_by_server(self._store, with_new_run(self._store, row))
        shown = left.model_copy(update={"status": "waiting", "detail": row.detail if row.request is None else None})
        job = Job(shown, self._save, fence=row.fence, starts=row.starts, last=last and last + KEPT)
        job.cancels, job.used = row.cancels, (row.calls, row.cost)
        self._jobs[row.id], self._rows[row.id] = job, replace(row, run=left.run, grading=left.grading)
        self._forget_oldest()
        if row.request is None or left.status != "interrupted":
            self._finish(job, **left.model_dump(include={"status", "detail", "verdict", "done"}))
        elif row.starts >= MAX_CRASHES:
            self._finish(job, status="interrupted", detail=CRASHED)
        else:
            job.starts += 1
            self._save(job)
            _log_job("info" if job.starts == 1 else "warning", "started", job, crashes=job.starts - 1)
            self._at_work.add(row.id)
            if self._loop is None:
                self._loop = LoopThread("vivavoce-jobs")
            self._loop.begin(self._work(job))

    def _stop(self, job: Job, times: int) -> None:
        for _ in range(job.cancelled(times)):
            if self._loop is not None:
                self._loop.call(job.stop)

    def _lose(self, job: Job) -> None:
        if not job.lost:
            _log_job("warning", "lost", job, detail="another server has taken it over")
        job.lost = True
        if self._loop is not None:
            self._loop.call(job.lose)

    def _forget_oldest(self) -> None:
        ended = [job_id for job_id, job in self._jobs.items() if job.over and not (job.unsaved and not job.lost)]
        for job_id in ended[: max(0, len(ended) - REMEMBERED)]:
            del self._jobs[job_id], self._rows[job_id]

    # What follows runs in the thread of the jobs.

    async def _work(self, job: Job) -> None:
        job.task = asyncio.current_task()
        try:
            job.run = await asyncio.to_thread(self._rest_of, job)
            result = await job.run.execute()
            if result.stopped_by is None:
                self._finish(job, status="finished", verdict=result.grading.verdict, detail=None)
            else:
                self._stopped(job, "cancelled" if job.cancels else result.stopped_by)
        except asyncio.CancelledError:
            self._stopped(job, "cancelled")
        except Fenced:
            self._lose(job)
        except VivavoceError as error:
            self._failed(job, str(error))
        except Exception as error:
            self._failed(job, f"{type(error).__name__}: {error}")
        finally:
            job.run = job.task = None
            if self._jobs.get(job.record.id) in (job, None):  # else it was abandoned, and has begun here again
                self._at_work.discard(job.record.id)
            self._news.set()

    def _rest_of(self, job: Job) -> Execution:
        """Return the run of a job: the one that it has to start, or its own one to continue.

        Raises:
            UsageError: it cannot continue, or is not allowed any more.
        """
        row, record = self._rows[job.record.id], job.record
        assert row.request is not None
        request: KeptRequest | ResumeJob = KEPT_REQUEST.validate_json(row.request)
        before = None
        if record.run is not None:
            calls, cost = request.limits.max_calls, request.limits.max_cost
            before, request = (
                record,
                ResumeJob(
                    resume=record.run,
                    max_calls=None if calls is None else max(0, calls - row.calls),
                    max_cost=None if cost is None else max(0.0, cost - row.cost),
                ),
            )
        self._files.restore(self._queue.inputs(row))
        store = self._store.fenced(Fence(record.id, job.fence))
        return Beginning(store, self._policy, [job], self._files.path(record.id), before, row.new_run).run(request)

    def _stopped(self, job: Job, why: str) -> None:
        """Record that a job was stopped: by a user, by a limit, or by the end of the server."""
        if job.lost:
            return
        if not self._closing or not job.goes_on:
            self._finish(job, status="interrupted", detail=why)
            return
        job.starts -= 1
        try:
            self._save(job, status="waiting", owner=None, holds=None)
        except Fenced:
            return
        _log_job("info", "released", job)
        with self._saving:  # the other thread must not save that it is over
            job.end(saves=False, status="interrupted", detail=STOPPED)
            job.lost = True  # from here on the store knows more about it

    def _failed(self, job: Job, why: str) -> None:
        if not job.lost:
            status = "failed" if job.record.run is None else "interrupted"  # a run that was started can be resumed
            self._finish(job, status=status, detail=self._policy.shown(without_keys(why)))

    def _finish(self, job: Job, **values: Any) -> None:
        job.goes_on = False
        try:
            job.end(**values)
            _log_job("error" if job.record.status == "failed" else "info", "ended", job, detail=job.record.detail)
        except Fenced:
            self._lose(job)

    async def _stop_all(self) -> None:
        for seconds in (GRACE, CANCEL_GRACE):
            tasks = [job.task for job in self._jobs.values() if job.task is not None]
            for job in list(self._jobs.values()):
                if job.task is not None:
                    job.stop()
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)

    # What follows runs in both.

    def _save(self, job: Job, **more: Any) -> None:
        """Save what has changed in a job, and its new events.

        Raises:
            Fenced: another server has claimed it.
            StoreError: the store cannot be written.
        """
        with self._saving:
            events = job.to_save()
            record = job.record
            values = record.model_dump(exclude={"id", "kind", "created_at", "suite"}) | {"starts": job.starts}
            values |= {} if job.run is None else _used(job, job.run.budget)
            values |= {} if job.goes_on else {"request": None}
            values |= {"owner": None, "holds": None} if record.over else {}
            try:
                text = _text_of(events) if events else None
                last = events[-1].id if events else 0
                self._queue.save(record.id, job.fence, values | more, text, last)
            except Fenced:
                self._lose(job)
                raise
            except StoreError:
                job.not_saved()
                raise
            job.saved(events)


def _log_job(level: LogLevel, what: str, job: Job, **more: str | int | None) -> None:
    record = job.record
    log(level, f"job.{what}", job=record.id, kind=record.kind, status=record.status, run=record.run, **more)


def _text_of(events: Sequence[JobEvent]) -> str:
    return keys_of_environment().cut(strict_json([event.model_dump() for event in events]))


def _used(job: Job, budget: Budget) -> dict[str, Any]:
    """Return what a job has used of its limits, including under earlier servers."""
    calls, cost = job.used
    return {"calls": calls + budget.calls, "cost": cost + budget.cost}
