"""`Jobs`: work that outlasts a request, in a thread of its own; the files that say of it outlast the server.

A job is a run of the store. What the store cannot know, who asked for it and with which key, is in a small file for
each job below the served folder. After a restart a job whose run is unfinished is interrupted, and can be resumed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import threading
import time
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError

from vivavoce.errors import StoreError, UsageError, VivavoceError
from vivavoce.pacing.loop_thread import LoopThread
from vivavoce.records.redaction import without_keys
from vivavoce.report.strict_json import strict_json
from vivavoce.server.allowed import Allowed
from vivavoce.server.job import Job
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import AnyJob, Beginning, ResumeJob
from vivavoce.settings import WORKSPACE
from vivavoce.store.store import Store

AT_ONCE = 4
"""Jobs that are at work; others wait."""

MOST_WAITING = 100
"""Jobs that are not over, at most."""

GRACE = 5.0
"""Seconds that conversations in flight have when the server ends."""


class TooManyJobs(UsageError):
    """Enough jobs are waiting."""


class OtherBody(UsageError):
    """A key was used before, for another request."""


class _Kept(BaseModel):
    """What the file of a job holds; of the request and its key only hashes."""

    record: JobRecord
    key: str | None = None
    body: str = ""


class Jobs:
    """The jobs of one server; any thread may ask."""

    def __init__(self, store: Store, allowed: Allowed) -> None:
        self._store, self._allowed = store, allowed
        self._folder = allowed.workspace / WORKSPACE / "jobs"
        self._jobs: dict[str, Job] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.RLock()
        self._loop: LoopThread | None = None
        self._places: asyncio.Semaphore | None = None
        self._closed = False
        self._load()

    def submit(self, request: AnyJob, key: str | None = None) -> JobRecord:
        """Begin a job, or return the one that the same key has begun with the same request.

        Raises:
            UsageError: something in the request is wrong, or may not be asked for.
            OtherBody: the key was there with another request.
            TooManyJobs: enough are waiting.
            StoreError: the job cannot be kept.
        """
        body = _digest(f"{request.kind} {strict_json(request.model_dump())}")
        hidden = None if key is None else _digest(key)
        with self._lock:
            if hidden is not None and hidden in self._keys:
                before, known = self._keys[hidden]
                if before != body:
                    raise OtherBody("this Idempotency-Key was there before, with another request")
                return self._jobs[known].record
            if self._closed or sum(not job.record.over for job in self._jobs.values()) >= MOST_WAITING:
                raise TooManyJobs(f"{MOST_WAITING} jobs are waiting already; try again later")
            return self._begin(request, hidden, body).record

    def list(self, after: str | None = None, limit: int = 50) -> list[JobRecord]:
        """Return the newest jobs, the newest first; those before the job `after`, where that is named.

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
            raise UsageError(f"no job '{job_id}'")
        return job

    def is_last(self, record: JobRecord) -> bool:
        """Say whether a job is the last one on its run, so that nobody has gone on with it."""
        with self._lock:
            mine = [job.record for job in self._jobs.values() if job.record.run == record.run]
        return record.run is not None and max(mine, key=_age).id == record.id

    def at_work_on(self, run_id: str) -> JobRecord | None:
        """Return the job that works on a run at this moment."""
        with self._lock:
            records = [job.record for job in self._jobs.values()]
        return next((one for one in records if one.run == run_id and not one.over), None)

    def cancel(self, job_id: str) -> JobRecord:
        """Have a job finish what is in flight and end; asked a second time, drop that too.

        Raises:
            UsageError: there is none of that id.
        """
        job = self.get(job_id)
        if not job.record.over and self._loop is not None:
            self._loop.call(job.stop)
        return job.record

    def close(self) -> None:
        """End every job in good order: what is in flight has a moment to finish, and what is finished is kept."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is None:
            return
        loop.run(self._stop_all())
        loop.stop()

    def _begin(self, request: AnyJob, key: str | None, body: str) -> Job:
        job_id = f"job-{secrets.token_hex(6)}"
        job = Job(JobRecord(id=job_id, kind=request.kind, created_at=time.time()), self._keep)
        before = None
        told = {"suite": getattr(request, "suite", None)}
        if isinstance(request, ResumeJob):
            before = self._last_on(request.resume)
            told = {"suite": before.suite, "run": before.run}
            request = request.model_copy(update={"resume": before.run})
        given = self._folder / f"{job_id}.jsonl"
        try:
            job.run = Beginning(self._store, self._allowed, [job], given, before).run(request)
            job.record = job.record.model_copy(update=told)
            self._kept[job_id] = _Kept(record=job.record, key=key, body=body)
            self._keep(job)
        except VivavoceError:  # there is no job, so nothing is to be left of one
            self._kept.pop(job_id, None)
            with suppress(OSError):  # it was never made
                given.unlink()
            raise
        self._jobs[job_id] = job
        if key is not None:
            self._keys[key] = (body, job_id)
        if self._loop is None:
            self._loop = LoopThread("vivavoce-jobs")
        self._loop.begin(self._work(job))
        return job

    def _last_on(self, name: str) -> JobRecord:
        """Return the last job on a run that can go on."""
        run_id = self._store.run(name).id
        mine = sorted((job.record for job in self._jobs.values() if job.record.run == run_id), key=_age)
        if not mine:
            raise UsageError(f"run {run_id} was not begun by a job; go on with: viva run --resume {run_id}")
        if not all(record.over for record in mine):
            raise UsageError(f"run {run_id} is being worked on already")
        return mine[-1]

    async def _work(self, job: Job) -> None:
        if self._places is None:
            self._places = asyncio.Semaphore(AT_ONCE)
        job.task = asyncio.current_task()
        try:
            async with self._places:
                assert job.run is not None
                result = await job.run.execute()
            status = "finished" if result.stopped_by is None else "interrupted"
            job.end(status=status, verdict=result.grading.verdict, detail=result.stopped_by)
        except asyncio.CancelledError:
            job.end(status="interrupted", detail="cancelled")
        except VivavoceError as error:
            job.end(status=_after_error(job), detail=without_keys(str(error)))
        except Exception as error:
            job.end(status=_after_error(job), detail=without_keys(f"{type(error).__name__}: {error}"))
        finally:
            job.run = job.task = None

    async def _stop_all(self) -> None:
        for seconds in (GRACE, None):
            tasks = [job.task for job in self._jobs.values() if job.task is not None]
            for job in list(self._jobs.values()):
                if job.task is not None:
                    job.stop()
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)

    def _keep(self, job: Job) -> None:
        """Write the file of a job, all of it or nothing."""
        kept = self._kept[job.record.id] = self._kept[job.record.id].model_copy(update={"record": job.record})
        path = self._folder / f"{job.record.id}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            new.write_text(strict_json(kept.model_dump()), encoding="utf-8")
            os.replace(new, path)
        except OSError as error:
            raise StoreError(f"{self._folder}: the job cannot be kept: {error.strerror or error}") from error

    def _load(self) -> None:
        """Read what earlier servers left; what was at work then is interrupted, unless its run came to its end."""
        for path in sorted(self._folder.glob("job-*.json")):
            try:
                kept = _Kept.model_validate_json(path.read_bytes())
            except (OSError, ValidationError) as error:
                raise StoreError(f"{path}: this is not the file of a job; move it away ({error})") from error
            record = kept.record if kept.record.over else self._left(kept.record)
            self._kept[record.id] = kept
            self._jobs[record.id] = Job(record, self._keep)
            if kept.key is not None:
                self._keys[kept.key] = (kept.body, record.id)

    def _left(self, record: JobRecord) -> JobRecord:
        ended: dict[str, Any] = {"status": "interrupted", "detail": "the server ended"}
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


def _after_error(job: Job) -> str:
    """Return how a job stands that broke: a run that was begun can go on."""
    return "failed" if job.record.run is None else "interrupted"


def _age(record: JobRecord) -> tuple[float, str]:
    return (record.created_at, record.id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
