"""`JobWork`: the jobs that a server has claimed, their processes, and the thread that looks after the claims.

Each job has a process for its run, and a thread that takes what the process says of it. One more thread claims jobs
while there are free places, renews the leases, saves progress and events, and learns which jobs somebody has cancelled
at another server or that another server has taken over. A process that gives no sign of life for too long is killed,
and its job is given up, so that this or another server takes it again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from vivavoce.errors import StoreError, UsageError
from vivavoce.models.modes import CAPABILITIES
from vivavoce.records.redaction import keys_of_environment, without_keys
from vivavoce.records.run import UnreadableRun
from vivavoce.report.text import strict_json
from vivavoce.server.job import Job, JobEnd, JobNews, Obeyed, Pulse, left_by_server, with_new_run
from vivavoce.server.job_process import JobTask, Order
from vivavoce.server.job_record import JobEvent
from vivavoce.server.job_requests import JobFiles
from vivavoce.server.monitoring import LogLevel, log
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import Task, WorkProcess, job_bytes
from vivavoce.store.database.database import Fenced, UnreadableRow
from vivavoce.store.jobs import KEPT, Claimant, JobRow
from vivavoce.store.store import Store

AT_ONCE = 4
"""Jobs that one server works on at a time; others wait for it, or for another server."""

MAX_AT_ONCE_FOR_USER = AT_ONCE - 1
"""Jobs of one user that one server works on at a time, so that the jobs of others need not wait for theirs."""

MAX_CRASHES = 2
"""How often a job may crash or hang, or its server with it; after that it is not continued."""

GRACE = 5.0
"""Seconds that conversations in progress have when the server stops."""

CANCEL_GRACE = 2.0
"""Seconds that cancelled conversations have after that; what still runs then is killed."""

OBEY_SECONDS = 1.0
"""Seconds to wait until the process of a job has heard that it is to stop."""

TURN = 0.5
"""Seconds between two looks at the store."""

REMEMBERED = 10
"""Jobs that have ended here and are still shown from memory."""

STOPPED = "the server stopped; the job continues when the server is started again"
CRASHED = "this job crashed or hung twice, or its server stopped; to try again, resume it or submit it again"


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
        self._processes: dict[str, _Process] = {}
        self._store_failed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look for jobs; a second call has them looked for at once."""
        with self._claiming:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._keep, name="vivavoce-keeper", daemon=True)
                self._thread.start()
        self._news.set()

    @property
    def is_at_work(self) -> bool:
        """Whether the thread that looks after the jobs works, where it was started."""
        return self._thread is None or self._closing or self._thread.is_alive()

    def job(self, job_id: str) -> Job | None:
        """Return a job that is, or was, at work here, None where the store knows more about it."""
        job = self._jobs.get(job_id)
        return None if job is None or job.lost else job

    def cancel(self, job_id: str, times: int) -> None:
        """Stop a job that was cancelled this many times in all: at once if it is at work here, or if nobody has it."""
        job = self.job(job_id)
        if job is not None:
            self._stop(job, times)
            if (process := self._processes.get(job_id)) is not None:
                process.wait_until_obeyed()
            return
        with self._claiming:
            if not self._closing:
                row = self._queue.claim(self._claimant(), job_id)
                if row is not None:
                    self._take_or_fail(row)
                elif (job := self.job(job_id)) is not None:  # it was claimed here in the meantime
                    self._stop(job, times)

    def close(self) -> None:
        """Stop every job cleanly: conversations in progress get a moment to finish, and finished ones are stored.

        A job that does not stop in time is killed; it counts as one that crashed.
        """
        with self._claiming:
            self._closing = True
            processes = list(self._processes.values())
        for seconds in (GRACE, CANCEL_GRACE):
            for process in processes:
                if process.is_at_work:
                    process.job.stop()
            _join(processes, seconds)
        for process in processes:
            if process.is_at_work:
                process.job.abandon()
        _join(processes, CANCEL_GRACE)
        self._closed = True
        self._news.set()
        if self._thread is not None:
            self._thread.join()
        self._presence.close()

    # What follows runs in the thread that looks after the claims.

    def _keep(self) -> None:
        while not self._closed:
            self._try_turn()
            self._news.wait(TURN)
            self._news.clear()

    def _try_turn(self) -> None:
        """Take a turn; where the store cannot be used now, or anything else fails, the next turn tries again."""
        try:
            self._turn()
        except StoreError as error:
            if not self._store_failed:
                log("error", "store.failed", detail=str(error))
            self._store_failed = True
            return
        except Exception as error:  # this thread looks after all jobs, and must not end before the server
            log("error", "jobs.failed", detail=without_keys(f"{type(error).__name__}: {error}"))
            return
        if self._store_failed:
            log("info", "store.works_again")
        self._store_failed = False

    def _turn(self) -> None:
        for process in list(self._processes.values()):
            if process.is_silent(self._policy.hang_seconds / TURN):
                self._abandon(process.job, "hung")
        if self._at_work:
            self._look_after_leases()
        for job in list(self._jobs.values()):
            with self._saving, suppress(Fenced):  # it is lost by now, and its work here ends
                if job.unsaved and not job.lost:
                    self._save(job)
        with self._claiming:
            while not self._closing and len(self._at_work) < AT_ONCE and self._claim_one():
                pass

    def _abandon(self, job: Job, why: str) -> None:
        """Give up a job whose process hangs or has ended, so that this or another server takes it again."""
        with self._claiming:
            if self._closing or job.lost:
                return
            with suppress(Fenced):
                self._queue.save(job.record.id, job.fence, {"owner": None, "holds": None})
            job.abandon()
            _log_job("error", why, job)
            self._at_work.discard(job.record.id)
            self._processes.pop(job.record.id, None)

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
            self._take_or_fail(row)
        return row is not None

    def _take_or_fail(self, row: JobRow) -> None:
        """Begin or continue a job that was claimed; where that fails because of what is stored of it, end it."""
        try:
            self._take(row)
        except (StoreError, UsageError) as error:
            if not isinstance(error, UnreadableRow | UnreadableRun):
                raise
            self._give_up(row, error)
        except Exception as error:  # whatever is stored of a job is about this job alone
            self._give_up(row, error)

    def _give_up(self, row: JobRow, error: Exception) -> None:
        detail = without_keys(f"what is stored of this job cannot be used: {type(error).__name__}: {error}")
        if (job := self._jobs.pop(row.id, None)) is not None:
            job.abandon()
        self._rows.pop(row.id, None)
        values = {"status": "failed", "detail": detail, "request": None, "owner": None, "holds": None}
        with suppress(Fenced):
            self._queue.save(row.id, row.fence, values)
        log("error", "job.ended", job=row.id, kind=row.kind, status="failed", run=row.run, detail=detail)

    def _claimant(self) -> Claimant:
        """Return this server, with those that were not there at two looks: a database may lose sight for a moment."""
        now = time.monotonic()
        self._missing = {name: self._missing.get(name, now) for name in self._queue.dead(self._name)}
        dead = {name for name, since in self._missing.items() if now - since >= TURN}
        return Claimant(self._name, self._folder, self._policy.lease, dead, MAX_AT_ONCE_FOR_USER)

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
        process = _Process(job, self._work)  # before anybody can cancel the job here, so that it learns of that
        self._rows[row.id] = replace(row, run=left.run, grading=left.grading)
        self._jobs[row.id] = job
        self._forget_oldest()
        if row.request is None or left.status != "interrupted":
            self._finish(job, **left.model_dump(include={"status", "detail", "verdict", "done"}))
        elif row.starts >= MAX_CRASHES:
            self._finish(job, status="interrupted", detail=CRASHED)
        else:
            job.starts += 1
            try:
                self._save(job)
            except StoreError:  # it has not begun, so whoever claims it next begins it
                job.abandon()
                del self._jobs[row.id]
                raise
            _log_job("info" if job.starts == 1 else "warning", "started", job, crashes=job.starts - 1)
            self._at_work.add(row.id)
            self._processes[row.id] = process
            process.begin()

    def _stop(self, job: Job, times: int) -> None:
        for _ in range(job.cancelled(times)):
            job.stop()

    def _lose(self, job: Job) -> None:
        if not job.lost:
            _log_job("warning", "lost", job, detail="another server has taken it over")
            job.lose()

    def _forget_oldest(self) -> None:
        ended = [job_id for job_id, job in self._jobs.items() if job.over and not (job.unsaved and not job.lost)]
        for job_id in ended[: max(0, len(ended) - REMEMBERED)]:
            del self._jobs[job_id], self._rows[job_id]

    # What follows runs in the threads of the jobs.

    def _work(self, process: _Process) -> None:
        job = process.job
        try:
            end = self._follow(process)
        except Fenced:
            self._lose(job)
        except StoreError as error:
            self._failed(job, str(error))
        except EOFError:
            self._crashed(job)
        else:
            self._ended(job, end)
        finally:
            process.end()
            job.process = None
            if self._jobs.get(job.record.id) in (job, None):  # else it was abandoned, and has begun here again
                self._at_work.discard(job.record.id)
                self._processes.pop(job.record.id, None)
            self._news.set()

    def _follow(self, process: _Process) -> JobEnd:
        """Take what the process of a job says of it, until its end.

        Raises:
            EOFError: the process has ended before.
            Fenced: another server has claimed the job.
            StoreError: the process cannot be started, or the store cannot be written.
        """
        job = process.job
        files, address = self._files.folder.absolute(), str(self._store.place.address)
        task = JobTask(address, self._policy, self._rows[job.record.id], job.record, files)
        process.start(Task("vivavoce.server.job_process:run_job", (task,), max_bytes=job_bytes(job.record.suite)))
        while True:
            thing = process.receive()
            if isinstance(thing, JobEnd):
                return thing
            if isinstance(thing, Pulse):
                job.used_here = (thing.calls, thing.cost)
            elif not job.lost:
                assert isinstance(thing, JobNews)
                job.take(thing)
                if thing.kind == "started":
                    process.order("go on")

    def _ended(self, job: Job, end: JobEnd) -> None:
        """Record how the run of a job ended."""
        CAPABILITIES.learn(end.known)
        if end.is_cancelled:
            self._stopped(job, "cancelled")
        elif isinstance(end.error, Fenced):
            self._lose(job)
        elif end.error is not None:
            self._failed(job, str(end.error))
        elif end.stopped_by is not None:
            self._stopped(job, "cancelled" if job.cancels else end.stopped_by)
        else:
            self._finish(job, status="finished", verdict=end.verdict, detail=None)

    def _crashed(self, job: Job) -> None:
        """Record that the process of a job is gone: it was killed, or it crashed."""
        if job.lost:
            return
        if job.cancels:
            self._finish(job, status="interrupted", detail="cancelled")
            return
        try:
            self._abandon(job, "crashed")
        except StoreError as error:
            self._failed(job, str(error))

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
        except StoreError as error:  # whoever opens the store next finds the job without its server
            _log_job("error", "not_saved", job, detail=str(error))
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
        except StoreError as error:  # the thread that looks after the claims saves it once that is possible
            _log_job("error", "not_saved", job, detail=str(error))

    # What follows runs in all of them.

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
            values |= _count_usage(job)
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


def _count_usage(job: Job) -> dict[str, Any]:
    """Return what a job has used of its limits, including under earlier servers."""
    (calls, cost), (calls_here, cost_here) = job.used, job.used_here
    return {"calls": calls + calls_here, "cost": cost + cost_here}


class _Process:
    """The process of a job, and the thread that works with it."""

    def __init__(self, job: Job, work: Callable[[_Process], None]) -> None:
        self.job = job
        self._process: WorkProcess | None = None
        self._is_killed = False
        self._stops = 0
        self._silent_turns: int | None = None
        self._lock = threading.Lock()
        self._obeyed = threading.Event()
        job.process = self
        self._thread = threading.Thread(target=work, args=(self,), name="vivavoce-job", daemon=True)

    def begin(self) -> None:
        """Begin to work in the thread."""
        self._thread.start()

    @property
    def is_at_work(self) -> bool:
        """Whether the thread still works."""
        return self._thread.is_alive()

    def start(self, task: Task) -> None:
        """Start the process.

        Raises:
            StoreError: it cannot be started.
        """
        process = WorkProcess(task)
        with self._lock:
            self._process = process
            stops = self._stops
        if self._is_killed:
            process.kill()
        elif stops:
            self.order("cancel")

    def receive(self) -> Any:
        """Wait for the next thing that the process says.

        Raises:
            EOFError: the process is gone.
        """
        assert self._process is not None
        while isinstance(thing := self._process.receive(), Obeyed):
            self._obeyed.set()
        self._silent_turns = 0
        return thing

    def is_silent(self, turns: float) -> bool:
        """Return whether the process has said nothing for this many turns; it speaks from its beginning on.

        Turns are counted, not seconds: they do not pass while the server stands still.
        """
        if self._silent_turns is None:
            return False
        self._silent_turns += 1
        return self._silent_turns > turns

    def order(self, order: Order) -> None:
        """Tell the process something; it may be gone already."""
        with self._lock:
            if self._process is not None:
                with suppress(OSError):
                    self._process.send(order)

    def stop(self) -> None:
        """Stop the run after the conversations in progress; a second call stops these, too, or kills the process."""
        with self._lock:
            self._stops += 1
        self._obeyed.clear()
        self.order("stop")
        if self._stops > 1:
            self._kill_soon()

    def wait_until_obeyed(self) -> None:
        """Wait a moment until the process stops, so that it begins nothing once somebody was told that it does."""
        if self._process is not None:
            self._obeyed.wait(OBEY_SECONDS)

    def cancel(self) -> None:
        """Stop the run at once; where it does not end soon, kill the process."""
        with self._lock:
            self._stops += 1
        self.order("cancel")
        self._kill_soon()

    def kill(self) -> None:
        """Kill the process."""
        self._is_killed = True
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._process.end()

    def join(self, seconds: float) -> None:
        """Wait for the thread."""
        self._thread.join(seconds)

    def _kill_soon(self) -> None:
        timer = threading.Timer(CANCEL_GRACE, self.kill)
        timer.daemon = True
        timer.start()


def _join(processes: Sequence[_Process], seconds: float) -> None:
    """Wait for the threads of processes, at most this many seconds in all."""
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
