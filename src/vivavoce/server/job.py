"""A job: what its process says of the run, the events that its followers get, and what is left when it ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Literal, Protocol

from vivavoce.errors import NotFound, UsageError, VivavoceError
from vivavoce.models.modes import CAPABILITIES, KnownCapabilities
from vivavoce.records.run import (
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    BatchesAsked,
    Event,
    Outcome,
    RunEnded,
    RunStarted,
    TurnEnded,
    Verdict,
)
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import Turn, tool_calls
from vivavoce.server.job_record import EventFrame, JobEvent, JobRecord, MessageNews
from vivavoce.store.browse.listing import ScoreEntry
from vivavoce.store.jobs import KEPT, KEPT_BYTES, Claimant, JobRow
from vivavoce.store.store import Store

SHOWN = 4000
"""Maximum characters of a message, or of a reason, in an event."""


@dataclass(frozen=True, slots=True)
class JobNews:
    """One event of a run: the kind of the event of its job, the fields, and new values of the record of the job.

    `is_done` means that a conversation has ended, and `is_broken` that it has an error.
    """

    kind: Literal["started", "held", "turn", "graded"] | None = None
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    is_done: bool = False
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class Pulse:
    """The process of a job still works: the calls that it has made, and what they cost in US dollars."""

    calls: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Obeyed:
    """The process of a job has done what the server told it."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a run: what stopped it, its verdict, or the error that ended it, or that it was cancelled."""

    stopped_by: str | None = None
    verdict: Verdict | None = None
    error: VivavoceError | None = None
    is_cancelled: bool = False
    known: KnownCapabilities = field(default_factory=CAPABILITIES.snapshot)


def news_of(event: Event) -> JobNews | None:
    """Return an event of a run as news of its job; None for one that says nothing of it."""
    match event:
        case RunStarted():
            named = {"run": event.run.id, "grading": event.grading.id, "planned": event.planned}
            return JobNews("started", values={"status": "running", "done": event.done, **named})
        case AttemptStarted():
            return JobNews("held", _of(event.key))
        case TurnEnded():
            turn = {"turn": event.turn.index, "messages": _message_news(event.turn)}
            return JobNews("turn", {**_of(event.key), **turn})
        case AttemptEnded():
            scores = _scores(event.outcome)
            broken = any(score.state == "error" for score in scores)
            key = _of(event.outcome.attempt.key)
            return JobNews("graded", {**key, "scores": scores}, is_done=True, is_broken=broken)
        case BatchesAsked():
            return None  # a job counts conversations, and waiting ends none
        case RunEnded():
            return JobNews(values={"verdict": event.grading.verdict})


def _of(key: AttemptKey) -> dict[str, Any]:
    return key._asdict()


def _message_news(turn: Turn) -> list[MessageNews]:
    return [
        MessageNews(
            role=message.role,
            text=shorten(message.text, SHOWN) or "",
            calls=[call.name for call in tool_calls([message])],
        )
        for message in turn.messages
    ]


def _scores(outcome: Outcome) -> list[ScoreEntry]:
    scored = [("grade", name, score) for name, score in outcome.scores.items()]
    rewards = [] if outcome.reward is None else [("reward", "reward", outcome.reward)]
    return [
        ScoreEntry.model_validate(
            {
                "kind": kind,
                "name": name,
                "state": score.state,
                "value": score.value,
                "measured": score.measured,
                "passed": score.passed,
                "reason": shorten(score.reason, SHOWN),
                "failure": score.failure,
            }
        )
        for kind, name, score in (*scored, *rewards)
    ]


class JobProcess(Protocol):
    """The process of a job."""

    def stop(self) -> None:
        """Stop the run after the conversations in progress; a second call stops these, too."""
        ...

    def cancel(self) -> None:
        """Stop the run at once; where it does not end soon, kill the process."""
        ...

    def kill(self) -> None:
        """Kill the process."""
        ...


class Job:
    """One job; one thread takes the news of its run, and others follow it from their own threads.

    `fence` is the number of the claim of this server. `changed` is called when the job has to be saved at once; other
    changes are in `unsaved` until somebody saves them. `goes_on` means that another server continues the job if this
    one stops before its end, `lost` that another one has it now; `used` are the calls and the US dollars that it has
    used before, `used_here` those that it has used since, `stops` how often this server stopped it, and `starts` the
    servers that began to run it and did not end it in good order, this one included while it
    runs. Its events come after the number `last`.
    """

    def __init__(
        self, record: JobRecord, changed: Callable[[Job], None], *, fence: int = 0, starts: int = 0, last: int = 0
    ) -> None:
        self.record = record
        self.fence = fence
        self.process: JobProcess | None = None
        self.stops = 0
        self.goes_on = True
        self.lost = False
        self.cancels = 0
        self.starts = starts
        self.used: tuple[int, float] = (0, 0.0)
        self.used_here: tuple[int, float] = (0, 0.0)
        self._changed = changed
        self._events: deque[tuple[JobEvent, EventFrame]] = deque()
        self._event_bytes = 0
        self._last = self._saved = last
        self._dirty = False
        self._ended = record.over
        self._followers: set[Callable[[], object]] = set()
        self._lock = Lock()

    @property
    def over(self) -> bool:
        """Whether no more events follow here."""
        return self._ended

    @property
    def unsaved(self) -> bool:
        """Whether something has changed since it was saved."""
        return self._dirty

    def take(self, news: JobNews) -> None:
        """Take what the process of the job says of its run; the first is saved at once, before the run begins."""
        if news.values:
            self._set(**news.values)
        if news.is_done:
            self._set(done=self.record.done + 1, errors=self.record.errors + news.is_broken)
        if news.kind == "started":
            self._changed(self)
            self._emit("started", job=self.record)
        elif news.kind is not None:
            self._emit(news.kind, **news.fields)

    def end(self, *, saves: bool = True, **values: Any) -> None:
        """Close the job: no more events follow. Unless it `saves` that, it is over on this server alone."""
        try:
            self._set(**values)
            if saves:
                self._changed(self)
        finally:
            self._emit("ended", job=self.record)

    def cancelled(self, times: int) -> int:
        """Take note that it was cancelled this many times in all, and return how many of these are new."""
        with self._lock:
            new, self.cancels = max(0, times - self.cancels), max(times, self.cancels)
            if new and not self.record.over:
                self.goes_on = False
                self.record = self.record.model_copy(update={"detail": "cancelled"})
            return 0 if self.record.over else new

    def lose(self) -> None:
        """Leave it to the server that has claimed it since: nothing more is saved here, and its followers go there."""
        self.lost = True
        if self.process is not None:
            self.process.cancel()
        self._wake()

    def abandon(self) -> None:
        """Leave it to whichever server claims it next: its process is killed."""
        self.lost = True
        if self.process is not None:
            self.process.kill()
        self._wake()

    def stop(self) -> None:
        """Stop it after the conversations in progress; a second call stops these, too."""
        self.stops += 1
        if self.process is not None:
            self.process.stop()

    async def follow(self, after: int = 0) -> AsyncGenerator[list[EventFrame]]:
        """Yield the events after a given one, all that are new at a time, until it is over or another server has it."""
        news = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, news.set)
        self._followers.add(wake)
        try:
            while True:
                news.clear()
                over = self._ended or self.lost
                if frames := self._frames_since(after):
                    yield frames
                    after = frames[-1].id
                if over:
                    return
                await news.wait()
        finally:
            self._followers.discard(wake)

    def since(self, after: int) -> list[JobEvent]:
        """Return the kept events after an id; all of them for an id that does not exist yet."""
        with self._lock:
            return [event for event, _ in self._events if event.id > after or after > self._last]

    def _frames_since(self, after: int) -> list[EventFrame]:
        with self._lock:
            return [frame for _, frame in self._events if frame.id > after or after > self._last]

    def to_save(self) -> list[JobEvent]:
        """Return the events that are not saved yet; `saved` says that they are.

        The end is none of them: who reads the record of a job that is over knows it.
        """
        with self._lock:
            self._dirty = False
            return [event for event, _ in self._events if event.id > self._saved and event.kind != "ended"]

    def saved(self, events: list[JobEvent]) -> None:
        """Take note that some events are saved."""
        self._saved = max(self._saved, events[-1].id if events else 0)

    def not_saved(self) -> None:
        """Take note that nothing could be saved."""
        self._dirty = True

    def _set(self, **values: Any) -> None:
        with self._lock:
            self.record = self.record.model_copy(update=values)
            self._dirty = True

    def _emit(self, kind: str, **more: Any) -> None:
        record = self.record
        with self._lock:
            self._last += 1
            counts = {"done": record.done, "errors": record.errors, "planned": record.planned}
            self._keep(JobEvent.model_validate({"id": self._last, "kind": kind, **counts, **more}))
            self._ended = kind == "ended"
            self._dirty = self._dirty or not self._ended
        self._wake()

    def _keep(self, event: JobEvent) -> None:
        """Keep an event, and drop the oldest where they are too many or too long."""
        frame = EventFrame.of(event)
        self._events.append((event, frame))
        self._event_bytes += len(frame.data)
        while len(self._events) > KEPT or (self._event_bytes > KEPT_BYTES and len(self._events) > 1):
            self._event_bytes -= len(self._events.popleft()[1].data)

    def _wake(self) -> None:
        for wake in list(self._followers):
            with suppress(RuntimeError):  # the loop of that follower has ended, and it with it
                wake()


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
