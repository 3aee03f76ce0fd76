"""The processes of a job: one checks its request, another makes or continues its run and tells the server about it."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from vivavoce.errors import UsageError, VivavoceError
from vivavoce.pacing.loops import run, wait_for
from vivavoce.records.redaction import without_keys
from vivavoce.records.run import AttemptEnded, Event, Outcome
from vivavoce.run.execution import Execution
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.server.job import JobEnd, Obeyed, Pulse, news_of
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import (
    AnyJob,
    Beginning,
    JobFiles,
    KeptRequest,
    ResumeJob,
    protected_from,
    request_class,
)
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import Channel, answering
from vivavoce.store.database.database import Fence
from vivavoce.store.jobs import JobRow, unmarked_request
from vivavoce.store.store import Store
from vivavoce.work_time import CONVERSATION_SECONDS, OF_CONVERSATION, limited_work

PULSE_SECONDS = 0.5
"""Seconds between two signs that the process works."""

MAX_SLOW_CONVERSATIONS = 10
"""Conversations of a job whose checks may take too long; then the job ends, and leaves its place to others."""

Order = Literal["go on", "stop", "cancel"]
"""What a server tells the process: to begin what it has announced, to end in good order, and to end at once."""

TOO_SLOW = f"the checks of {MAX_SLOW_CONVERSATIONS} conversations took more than {CONVERSATION_SECONDS:g} s each"

NO_JOB_MEMORY = "this job needs more memory than it may use; send fewer or shorter conversations at a time"

KEPT_REQUEST: TypeAdapter[KeptRequest] = TypeAdapter(KeptRequest)


@dataclass(frozen=True, slots=True)
class JobTask:
    """A claimed job: the store, what the server may run, the row, the record, and the folder of the files of jobs."""

    store: str
    policy: ServerPolicy
    row: JobRow
    record: JobRecord
    files: Path

    @property
    def request(self) -> KeptRequest:
        """The request, as it was kept."""
        assert self.row.request is not None
        return KEPT_REQUEST.validate_json(unmarked_request(self.row.request))


class _Worker:
    """The work of this process; it listens to its own run."""

    def __init__(self, channel: Channel, task: JobTask) -> None:
        self._channel, self._task = channel, task
        self._execution: Execution | None = None
        self._is_running = False
        self._go_on = asyncio.Event()
        self._slow = 0

    async def work(self, store: Store) -> JobEnd:
        """Make the run of the job, and return how it ended."""
        current = asyncio.current_task()
        assert current is not None
        listening = (asyncio.get_running_loop(), current)
        threading.Thread(target=self._listen, args=listening, name="vivavoce-orders", daemon=True).start()
        beating = asyncio.create_task(self._beat())
        try:
            self._execution = await asyncio.to_thread(self._run_of_job, store)
            result = await self._execution.execute()
        except asyncio.CancelledError:
            return JobEnd(is_cancelled=True)
        finally:
            beating.cancel()
            self._send_pulse()
        too_slow = self._slow >= MAX_SLOW_CONVERSATIONS and result.stopped_by is not None
        return JobEnd(TOO_SLOW if too_slow else result.stopped_by, result.grading.verdict)

    async def on(self, event: Event) -> None:
        """Tell the server about an event of the run; the run begins once the server has saved that it does."""
        if isinstance(event, AttemptEnded) and _took_too_long(event.outcome):
            self._slow += 1
            if self._slow == MAX_SLOW_CONVERSATIONS and self._execution is not None:
                self._execution.stop()
        news = news_of(event)
        if news is None:
            return
        self._send_pulse()
        self._channel.send(news)
        if news.kind == "started":
            await self._go_on.wait()
            self._is_running = True

    def _run_of_job(self, store: Store) -> Execution:
        """Return the run of a job: the one that it has to start, or its own one to continue.

        Raises:
            UsageError: it cannot continue, or is not allowed any more.
        """
        row, record, files = self._task.row, self._task.record, JobFiles(self._task.files)
        request: KeptRequest | ResumeJob = self._task.request
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
        files.restore(store.jobs.inputs(row))
        fenced = store.fenced(Fence(row.id, row.fence))
        return Beginning(fenced, self._task.policy, [self], files.path(row.id), before, row.new_run).run(request)

    def _listen(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[JobEnd]) -> None:
        """Pass on the orders of the server; end this process at once if the server is gone."""
        with suppress(RuntimeError):  # the loop is gone, and this process soon, too
            while True:
                try:
                    order = self._channel.receive()
                except EOFError:  # the loop may hang, and whoever can kill this process may be gone as well
                    os._exit(1)
                loop.call_soon_threadsafe(self._obey, order, task)

    def _obey(self, order: Order, task: asyncio.Task[JobEnd]) -> None:
        if order == "go on":
            self._go_on.set()
        elif order == "stop" and self._execution is not None and self._is_running:
            self._execution.stop()
        else:
            task.cancel()
        self._channel.send(Obeyed())

    async def _beat(self) -> None:
        while True:
            self._send_pulse()
            await asyncio.sleep(PULSE_SECONDS)

    def _send_pulse(self) -> None:
        budget = None if self._execution is None else self._execution.budget
        self._channel.send(Pulse() if budget is None else Pulse(budget.calls, budget.cost))


def _took_too_long(outcome: Outcome) -> bool:
    """Return whether the checks of a conversation took more than its time."""
    failures = [score.failure for score in outcome.scores.values() if score.failure is not None]
    return any(failure.kind == "limit" and failure.message.startswith(OF_CONVERSATION) for failure in failures)


def run_job(channel: Channel, task: JobTask) -> None:
    """Carry out a job, and tell the server how it ended."""
    try:
        with ExitStack() as stack:
            store = stack.enter_context(Store.open(task.store))
            stack.enter_context(protected_from(request_class(task.request, store)))
            end = run(_Worker(channel, task).work(store))
    except VivavoceError as error:
        end = JobEnd(error=error)
    except MemoryError:
        end = JobEnd(error=UsageError(NO_JOB_MEMORY))
    except Exception as error:
        end = JobEnd(error=UsageError(without_keys(f"{type(error).__name__}: {error}")))
    channel.send(end)


def _check(store: str, policy: ServerPolicy, request: AnyJob, file: Path, before: JobRecord | None) -> str | None:
    """Make the experiment of a request and close it; return the id of the run that it begins, None for an old run.

    Raises:
        UsageError: the request is wrong or not allowed.
        GraderFault: reading the texts of the request takes too long.
    """
    with ExitStack() as stack:
        opened = stack.enter_context(Store.open(store))
        kind = request_class(request, opened)
        if kind.brings_text:  # a suite may take its time, and may name files
            stack.enter_context(protected_from(kind))
        stack.enter_context(limited_work())
        run = Beginning(opened, policy, [], file, before).run(request)
        wait_for(run.check())
        return run.run_id if isinstance(run, ExperimentRun) and run.resumed is None else None


check = answering(_check)
