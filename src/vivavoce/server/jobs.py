"""`Jobs`: background work in its own thread, with files that survive a restart of the server.

A job is a run of the store. The request and its key, which the store does not have, are in a small file per job in the
served folder, written before the job is confirmed. After a restart, the next server continues the waiting and running
jobs, unless they were cancelled.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

from pydantic import TypeAdapter

from vivavoce.errors import NotFound, StoreError, UsageError, VivavoceError
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.loop_thread import LoopThread
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.redaction import without_keys
from vivavoce.report.strict_json import strict_json
from vivavoce.run.execution import Execution
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.server.job import Job
from vivavoce.server.job_files import JobFiles, KeptJob
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import AnyJob, Beginning, GradeJob, KeptRequest, ResumeJob
from vivavoce.server.policy import ServerPolicy
from vivavoce.settings import WORKSPACE
from vivavoce.store.store import Store

AT_ONCE = 4
"""Jobs that run at a time; others wait."""

MOST_WAITING = 100
"""Maximum number of unfinished jobs."""

MOST_STARTS = 10
"""How often in a row a job is started although its server ended each time before one of its conversations was
stored."""

GRACE = 5.0
"""Seconds that conversations in progress have when the server stops."""


_KEPT_REQUEST: TypeAdapter[KeptRequest] = TypeAdapter(KeptRequest)


class TooManyJobs(UsageError):
    """Too many jobs are waiting."""


class OtherBody(UsageError):
    """The key was used before for another request."""


class Jobs:
    """The jobs of one server; safe for use from any thread."""

    def __init__(self, store: Store, policy: ServerPolicy) -> None:
        self._store, self._policy = store, policy
        self._files = JobFiles(policy.workspace / WORKSPACE / "jobs")
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self._kept: dict[str, KeptJob] = {}
        self._claims: dict[str, ExitStack] = {}
        self._lock, self._keeping, self._submitting = threading.RLock(), threading.Lock(), threading.Lock()
        self._loop: LoopThread | None = None
        self._places: asyncio.Semaphore | None = None
        self._closed = False
        self._load()

    def submit(self, request: AnyJob, key: str | None = None) -> JobRecord:
        """Start a job, or return the one that the same key has started with the same request.

        Raises:
            UsageError: the request is wrong or not allowed. OtherBody: the key was used with
            another request. TooManyJobs: too many are waiting. StoreError: the job cannot be saved.
        """
        body = _digest(f"{request.kind} {strict_json(request.model_dump())}")
        hidden = None if key is None else _digest(key)
        with self._submitting:  # the others need not wait while what is asked for is checked
            if hidden is not None and hidden in self._keys:
                before, known = self._keys[hidden]
                if before != body:
                    raise OtherBody("this Idempotency-Key was already used with another request")
                return self._jobs[known].record
            if self._closed or sum(not job.record.over for job in self._jobs.values()) >= MOST_WAITING:
                raise TooManyJobs(f"{MOST_WAITING} jobs are already waiting; try again later")
            return self._begin(request, hidden, body).record

    def go_on(self) -> None:
        """Continue the jobs of earlier servers, oldest first; a job that another server has stays there."""
        with self._lock:
            left = [kept.record for kept in self._kept.values() if kept.request is not None]
            for record in sorted(left, key=_age):
                if record.id not in self._claims:
                    self._take_up(self._jobs[record.id])

    def list(self, after: str | None = None, limit: int = 50) -> list[JobRecord]:
        """Return the newest jobs, newest first; those before the job `after`, where that is named.

        Raises:
            UsageError: there is no such job.
        """
        with self._lock:
            records = sorted((job.record for job in self._jobs.values()), key=_age, reverse=True)
        start = 0 if after is None else 1 + [one.id for one in records].index(self.get(after).record.id)
        return records[start : start + limit]

    def get(self, job_id: str) -> Job:
        """Return a job.

        Raises:
            UsageError: there is none of that id.
        """
        job = self._jobs.get(job_id)
        if job is None:
            raise NotFound("job", job_id)
        return job

    def is_last(self, record: JobRecord) -> bool:
        """Return whether a job is the last one on its run, so that no other job has continued it."""
        with self._lock:
            mine = [job.record for job in self._jobs.values() if job.record.run == record.run]
        return record.run is not None and max(mine, key=_age).id == record.id

    def at_work_on(self, run_id: str) -> JobRecord | None:
        """Return the job that is working on a run now."""
        with self._lock:
            records = [job.record for job in self._jobs.values()]
        return next((one for one in records if one.run == run_id and not one.over), None)

    def cancel(self, job_id: str) -> JobRecord:
        """Stop a job after the conversations in progress; a second request stops these, too.

        Raises:
            UsageError: there is none of that id.
        """
        job = self.get(job_id)
        if not job.record.over:
            job.cancel()
            if self._loop is not None:
                self._loop.call(job.stop)
        return job.record

    def close(self) -> None:
        """Stop every job cleanly: conversations in progress get a moment to finish, and finished ones are stored."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is None:
            return
        loop.run(self._stop_all())
        loop.stop()
        for claim in list(self._claims.values()):
            claim.close()

    def _begin(self, request: AnyJob, key: str | None, body: str) -> Job:
        job_id = f"job-{secrets.token_hex(6)}"
        job = Job(JobRecord(id=job_id, kind=request.kind, created_at=time.time()), self._keep)
        before = None
        known = {"suite": getattr(request, "suite", None)}
        if isinstance(request, ResumeJob):
            before = self._last_on(request.resume)
            known = {"suite": before.suite, "run": before.run, "grading": before.grading}
            request = request.model_copy(update={"resume": before.run})
        elif isinstance(request, GradeJob):  # by the time it is done, another run may be the latest
            request = request.model_copy(update={"run": self._store.run(request.run).id})
        conversations_file = self._files.conversations(job_id)
        try:
            job.run = Beginning(self._store, self._policy, [job], conversations_file, before).run(request)
            wait_for(job.run.check())
            job.record = job.record.model_copy(update=known)
            claim = self._files.claim(job_id)
            assert claim is not None  # nobody else knows its id
            self._claims[job_id] = claim
            kept_request = _KEPT_REQUEST.validate_python(request.model_dump(exclude={"conversations"}))
            self._kept[job_id] = KeptJob(
                record=job.record,
                key=key,
                body=body,
                store=self._store.place,
                new_run=_new_run(job.run),
                request=kept_request,
            )
            self._keep(job)
        except Exception:  # there is no job, so nothing is to be left of one
            self._kept.pop(job_id, None)
            self._release(job_id)
            with suppress(OSError):  # it was never made
                conversations_file.unlink()
            raise
        self._add(job, key, body)
        return job

    def _add(self, job: Job, key: str | None, body: str) -> None:
        """Begin a job that is kept; when the server is ending, the next one does."""
        with self._lock:
            self._jobs[job.record.id] = job
            if key is not None:
                self._keys[key] = (body, job.record.id)
            if self._closed:
                self._release(job.record.id)
            else:
                self._start(job)

    def _start(self, job: Job) -> None:
        if self._loop is None:
            self._loop = LoopThread("vivavoce-jobs")
        self._loop.begin(self._work(job))

    def _take_up(self, job: Job) -> None:
        """Continue a job of an earlier server, or record why not."""
        job_id = job.record.id
        try:
            claim = self._files.claim(job_id)
            if claim is None:
                self._leave(job, "another server of this folder is working on it")
                return
            self._claims[job_id] = claim
            kept = self._files.read(job_id)  # whoever had it may have ended it since
            kept = self._kept[job_id] = kept.model_copy(update={"record": self._begun(kept)})
            if kept.request is None:
                self._leave(job, None, kept.record if kept.record.over else self._left(kept.record))
            elif kept.store != self._store.place:
                self._leave(job, "its runs are in another store")
            else:
                self._go_on_with(job, kept)
        except StoreError as error:
            self._leave(job, self._policy.shown(str(error)))

    def _go_on_with(self, job: Job, kept: KeptJob) -> None:
        record = self._left(kept.record)
        starts = 0 if record.done > kept.record.done else kept.starts
        self._kept[job.record.id] = kept.model_copy(update={"starts": starts})
        if record.status != "interrupted":
            self._finish(job, **record.model_dump(include={"status", "detail", "verdict", "done", "run", "grading"}))
        elif starts >= MOST_STARTS:
            why = f"the server stopped {starts} times during this job; to try again, resume it or submit it again"
            self._finish(job, status="interrupted", detail=why, done=record.done)
        else:
            job.update(status="waiting", detail=None, **record.model_dump(include={"run", "grading", "done"}))
            self._start(job)
            return
        self._release(job.record.id)

    def _leave(self, job: Job, why: str | None, record: JobRecord | None = None) -> None:
        """Show a job that this server does not continue; its file stays unchanged."""
        self._release(job.record.id)
        job.goes_on = False
        shown = record or job.record.model_copy(update={"status": "interrupted", "detail": why})
        self._jobs[shown.id] = Job(shown, self._keep)

    def _release(self, job_id: str) -> None:
        claim = self._claims.pop(job_id, None)
        if claim is not None:
            claim.close()

    def _last_on(self, name: str) -> JobRecord:
        """Return the last job on a run that can be resumed."""
        run_id = self._store.run(name).id
        with self._lock:
            mine = sorted((job.record for job in self._jobs.values() if job.record.run == run_id), key=_age)
        if not mine:
            raise UsageError(f"run {run_id} was not started by a job; continue with: viva run --resume {run_id}")
        if not all(record.over for record in mine):
            raise UsageError(f"run {run_id} is already in use")
        return mine[-1]

    async def _work(self, job: Job) -> None:
        if self._places is None:
            self._places = asyncio.Semaphore(AT_ONCE)
        job.task = asyncio.current_task()
        try:
            async with self._places:
                self._count_start(job)
                if job.run is None:  # it is from an earlier server
                    job.run = await asyncio.to_thread(self._rest_of, job)
                result = await job.run.execute()
            if result.stopped_by is None:
                self._finish(job, status="finished", verdict=result.grading.verdict, detail=None)
            else:
                self._stopped(job, result.stopped_by)
        except asyncio.CancelledError:
            self._stopped(job, "cancelled")
        except VivavoceError as error:
            self._finish(job, status=_after_error(job), detail=self._shown(str(error)))
        except Exception as error:
            self._finish(job, status=_after_error(job), detail=self._shown(f"{type(error).__name__}: {error}"))
        finally:
            job.run = job.task = None
            self._release(job.record.id)

    def _count_start(self, job: Job) -> None:
        kept = self._kept[job.record.id]
        self._kept[job.record.id] = kept.model_copy(update={"starts": kept.starts + 1})
        self._keep(job)

    def _rest_of(self, job: Job) -> Execution:
        """Return the run of a job of an earlier server: its own run to continue, or the one it had to start.

        Raises:
            UsageError: it cannot continue, or is not allowed any more.
        """
        kept, record = self._kept[job.record.id], job.record
        request, job.used = kept.request, (kept.calls, kept.cost)
        assert request is not None
        before = None
        if record.run is not None:
            calls, cost = request.limits.max_calls, request.limits.max_cost
            before, request = (
                record,
                ResumeJob(
                    resume=record.run,
                    max_calls=None if calls is None else max(0, calls - kept.calls),
                    max_cost=None if cost is None else max(0.0, cost - kept.cost),
                ),
            )
        conversations_file = self._files.conversations(record.id)
        return Beginning(self._store, self._policy, [job], conversations_file, before, kept.new_run).run(request)

    def _stopped(self, job: Job, why: str) -> None:
        """Record that a job was stopped: by a user, by a limit, or by the end of the server."""
        if not self._closed or not job.goes_on:
            self._finish(job, status="interrupted", detail=why)
            return
        kept = self._kept[job.record.id]
        self._kept[job.record.id] = kept.model_copy(update={"starts": 0})
        job.end(status="interrupted", detail="the server stopped; the job continues when the server is started again")

    def _finish(self, job: Job, **values: Any) -> None:
        job.goes_on = False
        job.end(**values)

    def _shown(self, why: str) -> str:
        return self._policy.shown(without_keys(why))

    async def _stop_all(self) -> None:
        for seconds in (GRACE, None):
            tasks = [job.task for job in self._jobs.values() if job.task is not None]
            for job in list(self._jobs.values()):
                if job.task is not None:
                    job.stop()
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)

    def _keep(self, job: Job) -> None:
        with self._keeping:
            kept = self._kept[job.record.id]
            used = {} if job.run is None else _used(job, job.run.budget)
            now = {"record": job.record, "request": kept.request if job.goes_on else None}
            self._files.write(kept.model_copy(update={**now, **used}))

    def _load(self) -> None:
        """Read the jobs of earlier servers; none is started before `go_on`."""
        for job_id in self._files.ids():
            kept = self._kept[job_id] = self._files.read(job_id)
            record = kept.record
            if kept.request is not None:
                record = record.model_copy(update={"status": "waiting", "detail": None})
            elif not record.over:
                record = self._left(record)
            self._jobs[job_id] = Job(record, self._keep)
            if kept.key is not None:
                self._keys[kept.key] = (kept.body, job_id)

    def _begun(self, kept: KeptJob) -> JobRecord:
        """Return the record of a job, with the run that it began in the last moment of its server."""
        record = kept.record
        if record.run is None and kept.new_run is not None:
            with suppress(NotFound):
                run = self._store.run(kept.new_run)
                if run.id == kept.new_run:
                    return record.model_copy(update={"run": run.id, "grading": self._store.gradings(run.id)[0].id})
        return record

    def _left(self, record: JobRecord) -> JobRecord:
        """Return the status of a job of an earlier server: interrupted, unless its run is finished."""
        ended: dict[str, Any] = {"status": "interrupted", "detail": record.detail or "the server stopped"}
        if record.run is not None:
            try:
                run = self._store.run(record.run)
                grading = self._store.grading(run.id, record.grading)
            except UsageError:
                return record.model_copy(update={"status": "failed", "detail": "its run has been deleted"})
            ended["done"] = self._store.counts(run.id)[0]
            if run.status == "finished" and grading.finished_at is not None:
                ended |= {"status": "finished", "detail": None, "verdict": grading.verdict}
            elif run.status == "finished":
                ended["done"] = len({row.key for row in self._store.scores(grading.id)})
        return record.model_copy(update=ended)


def _new_run(work: Execution | None) -> str | None:
    """Return the id of the run that is begun, None where one is continued or graded again."""
    return work.run_id if isinstance(work, ExperimentRun) and work.resumed is None else None


def _after_error(job: Job) -> str:
    """Return the status of a job with an error: a run that was started can be resumed."""
    return "failed" if job.record.run is None else "interrupted"


def _used(job: Job, budget: Budget) -> dict[str, Any]:
    """Return what a job has used of its limits, including under earlier servers."""
    calls, cost = job.used
    return {"calls": calls + budget.calls, "cost": cost + budget.cost}


def _age(record: JobRecord) -> tuple[float, str]:
    return (record.created_at, record.id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
