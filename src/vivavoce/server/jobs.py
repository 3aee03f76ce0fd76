"""`Jobs`: the jobs of a store, seen from one of its servers.

A job is a row of the store, written before the job is confirmed, and its result is a run. Any server of the same folder
may work on it; all servers list it, show its progress, and can cancel it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, nullcontext
from dataclasses import dataclass
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread
from pydantic import TypeAdapter
from pydantic_core import from_json

from vivavoce.errors import GraderFault, NotFound, UsageError
from vivavoce.records.redaction import keys_of_environment
from vivavoce.report.text import strict_json
from vivavoce.server.job import Job, current_record
from vivavoce.server.job_process import KEPT_REQUEST
from vivavoce.server.job_record import EventFrame, JobEvent, JobRecord
from vivavoce.server.job_requests import AnyJob, EvaluationJob, GradeJob, JobFiles, ResumeJob, lines_of, request_class
from vivavoce.server.job_work import JobWork
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import KILL_SECONDS, Task, call, job_bytes
from vivavoce.settings import WORKSPACE
from vivavoce.store.jobs import USER_MARK_CHARS, JobQueue, JobRow, marked_request
from vivavoce.store.store import Store

MOST_WAITING = 100
"""Maximum number of unfinished jobs."""

MAX_WAITING_FOR_USER = 50
"""Unfinished jobs of one user, so that others can still submit theirs."""

LOOK = 0.5
"""Seconds between two looks at a job of another server."""

STEP = 0.05
"""Seconds between two looks whether a job has begun here."""

REPLAY_THREADS = 2
"""Threads that read events of the store, so that they leave those of the server to other requests."""

Replaying = Callable[[], AbstractAsyncContextManager[None]]
"""Waits for a place to read events of the store, and holds it."""

_EVENTS: TypeAdapter[list[JobEvent]] = TypeAdapter(list[JobEvent])


class TooManyJobs(UsageError):
    """Too many jobs are waiting."""


class OtherBody(UsageError):
    """The key was used before for another request."""


@dataclass(frozen=True, slots=True)
class DistantJob:
    """A job that is not at work on this server, as the store has it."""

    record: JobRecord
    queue: JobQueue

    def since(self, after: int) -> list[JobEvent]:
        """Return the kept events after an id."""
        rows = self.queue.events(self.record.id, after)
        return [event for row in rows for event in _EVENTS.validate_json(row) if event.id > after]

    def frames_since(self, after: int) -> list[EventFrame]:
        """Return the same as it is sent."""
        rows = self.queue.events(self.record.id, after)
        return [EventFrame.of_stored(fields) for row in rows for fields in from_json(row) if fields["id"] > after]


class Jobs:
    """The jobs of a store for one server; safe for use from any thread."""

    def __init__(self, store: Store, policy: ServerPolicy) -> None:
        self._store, self._policy, self._queue = store, policy, store.jobs
        self._folder = str(policy.workspace.resolve())
        self._files = JobFiles(policy.workspace / WORKSPACE / "jobs")
        self._work = JobWork(store, policy, self._files)
        self._adding = threading.Lock()
        self._checking: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._replay_threads = CapacityLimiter(REPLAY_THREADS)
        self._closed = False

    @property
    def is_at_work(self) -> bool:
        """Whether this server looks after its jobs, where it does that at all."""
        return self._work.is_at_work

    def submit(self, request: AnyJob, key: str | None = None, user: str = "") -> JobRecord:
        """Start a job, or return the one that the same key has started with the same request.

        `user` is the id of who submits it, empty where nobody needs a token; users have their jobs run in turns.

        Raises:
            UsageError: the request is wrong or not allowed. OtherBody: the key was used with
            another request. TooManyJobs: too many are waiting. StoreError: the job cannot be saved.
        """
        body = _digest(f"{request.kind} {strict_json(request.model_dump())}")
        hidden = None if key is None else _digest(f"{user}\0{key}" if user else key)
        with self._alone("resume" if isinstance(request, ResumeJob) else hidden):
            known = None if hidden is None else self._queue.with_key(self._folder, hidden)
            if known is None:
                mark = _digest(user)[:USER_MARK_CHARS] if user else None
                self._check_room(mark)
                known = self._begin(request, hidden, body, mark)
        if known.body != body:
            raise OtherBody("this Idempotency-Key was already used with another request")
        return self.get(known.id).record

    def go_on(self) -> None:
        """Work on the jobs of the store whenever there are any, also on those that earlier servers have left."""
        self._work.start()

    def list(self, after: str | None = None, limit: int = 50) -> list[JobRecord]:
        """Return the newest jobs, newest first; those before the job `after`, where that is named.

        Raises:
            UsageError: there is no such job.
        """
        return [self._record(row) for row in self._queue.list(None if after is None else self._row(after), limit)]

    def get(self, job_id: str) -> Job | DistantJob:
        """Return a job.

        Raises:
            UsageError: there is none of that id.
        """
        return self._work.job(job_id) or DistantJob(current_record(self._store, self._row(job_id)), self._queue)

    async def follow(
        self, job_id: str, after: int = 0, replaying: Replaying = nullcontext
    ) -> AsyncGenerator[list[EventFrame]]:
        """Yield the events of a job after a given one, past and future, until it is over, wherever it is at work.

        Each list has what is there at a time, and the last event is always the end of the job. Events are read from
        the store inside of `replaying()`, which lasts until they are taken.

        Raises:
            UsageError: there is none of that id.
        """
        sent = after
        while True:
            found = await to_thread.run_sync(self.get, job_id)
            if isinstance(found, Job):
                async with aclosing(found.follow(sent)) as events:
                    async for frames in events:
                        yield frames
                        if frames[-1].kind == "ended":
                            return
                        sent = frames[-1].id
                if found.lost:
                    continue
            else:
                async with replaying():
                    if frames := await to_thread.run_sync(found.frames_since, sent, limiter=self._replay_threads):
                        yield frames
                        sent = frames[-1].id
                    del frames  # they are not held while waiting for more
            record = found.record
            if record.over:
                ended = JobEvent(id=max(sent, 1), kind="ended", job=record, done=record.done, errors=record.errors)
                yield [EventFrame.of(ended)]
                return
            await self._pause(job_id)

    def is_last(self, record: JobRecord) -> bool:
        """Return whether a job is the last one on its run, so that no other job has continued it."""
        return record.run is not None and self._queue.of_run(record.run)[0].id == record.id

    def at_work_on(self, run_id: str) -> JobRecord | None:
        """Return the job that is working on a run now."""
        records = [self._record(row) for row in self._queue.of_run(run_id)]
        return next((record for record in records if not record.over), None)

    def cancel(self, job_id: str) -> JobRecord:
        """Stop a job after the conversations in progress; a second request stops these, too.

        Raises:
            UsageError: there is none of that id.
        """
        if not self.get(job_id).record.over:
            self._work.cancel(job_id, self._queue.cancel(job_id))
        return self.get(job_id).record

    def close(self) -> None:
        """Stop the jobs of this server cleanly; others continue them."""
        self._closed = True
        self._work.close()

    def _begin(self, request: AnyJob, key: str | None, body: str, user: str | None) -> JobRow:
        job_id = f"job-{secrets.token_hex(6)}"
        before = None
        suite: str | None = getattr(request, "suite", None)
        run = grading = None
        if isinstance(request, ResumeJob):
            before = self._last_on(request.resume)
            suite, run, grading = before.suite, before.run, before.grading
            request = request.model_copy(update={"resume": before.run})
        elif isinstance(request, GradeJob):  # by the time it is done, another run may be the latest
            request = request.model_copy(update={"run": self._store.run(request.run).id})
        content = lines_of(request.conversations) if isinstance(request, EvaluationJob) else None
        try:
            if content is not None:
                self._files.write(job_id, content)
            new_run = self._check(request, job_id, before)
            kept_request = KEPT_REQUEST.validate_python(request.model_dump(exclude={"conversations"}))
            job = JobRow(
                id=job_id,
                folder=self._folder,
                kind=request.kind,
                created_at=time.time(),
                request=marked_request(keys_of_environment().cut(strict_json(kept_request.model_dump())), user),
                key=key,
                body=body,
                new_run=new_run,
                suite=suite,
                run=run,
                grading=grading,
            )
            with self._adding:
                self._check_room(user)  # others may have been added while this one was checked
                other = self._queue.add(job, content)
        except Exception:  # there is no job, so nothing is to be left of one
            self._files.remove(job_id)
            raise
        if other is not None:
            self._files.remove(job_id)
            return other
        self._work.start()
        return job

    def _check(self, request: AnyJob, job_id: str, before: JobRecord | None) -> str | None:
        """Have a process check a request, and return the id of the run that the job begins.

        Raises:
            UsageError: the request is wrong, not allowed, or takes too long to read.
        """
        arguments = (str(self._store.place.address), self._policy, request, self._files.path(job_id), before)
        seconds = KILL_SECONDS if request_class(request, self._store).brings_text else None
        suite: str | None = getattr(request, "suite", None) if before is None else before.suite
        try:
            return call(Task("vivavoce.server.job_process:check", arguments, seconds, job_bytes(suite)))
        except GraderFault as error:
            raise UsageError(str(error)) from error

    @contextmanager
    def _alone(self, name: str | None) -> Generator[None]:
        """Let nobody else check a request of the same name meanwhile; one without a name waits for no other."""
        if name is None:
            yield
            return
        with self._adding:
            lock = self._checking.setdefault(name, threading.Lock())
        with lock:
            yield

    def _check_room(self, user: str | None) -> None:
        if self._closed or self._queue.unfinished() >= MOST_WAITING:
            raise TooManyJobs(f"{MOST_WAITING} jobs are already waiting; try again later")
        if user is not None and self._queue.unfinished(user) >= MAX_WAITING_FOR_USER:
            raise TooManyJobs(f"{MAX_WAITING_FOR_USER} of your jobs are already waiting; try again later")

    def _last_on(self, name: str) -> JobRecord:
        """Return the last job on a run that can be resumed."""
        run_id = self._store.run(name).id
        mine = [self._record(row) for row in self._queue.of_run(run_id)]
        if not mine:
            raise UsageError(f"run {run_id} was not started by a job; continue with: viva run --resume {run_id}")
        if not all(record.over for record in mine):
            raise UsageError(f"run {run_id} is already in use")
        return mine[0]

    def _row(self, job_id: str) -> JobRow:
        row = self._queue.get(job_id)
        if row is None:
            raise NotFound("job", job_id)
        return row

    def _record(self, row: JobRow) -> JobRecord:
        here = self._work.job(row.id)
        return current_record(self._store, row) if here is None else here.record

    async def _pause(self, job_id: str) -> None:
        """Wait until it is time for another look at a job, or until it has begun here."""
        deadline = time.monotonic() + LOOK
        while time.monotonic() < deadline and self._work.job(job_id) is None:  # noqa: ASYNC110 - a thread begins it
            await asyncio.sleep(STEP)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
