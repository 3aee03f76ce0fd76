"""A running job: it listens to its run, counts, and sends events to its followers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any

from vivavoce.records.events import AttemptEnded, AttemptStarted, Event, RunEnded, RunStarted, TurnEnded
from vivavoce.records.failure import shorten
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.trajectory import Turn, tool_calls
from vivavoce.run.execution import Execution
from vivavoce.server.job_record import JobEvent, JobRecord, MessageNews
from vivavoce.store.browse.listing import ScoreEntry

KEPT = 2000
"""Events that are kept for later followers; each has the progress of the job, so older ones can be dropped."""

NOTED = 1.0
"""Seconds between two saves of the progress of a job."""

SHOWN = 4000
"""Maximum characters of a message, or of a reason, in an event."""


class Job:
    """One job; its run reports events in one thread, and others follow it from their own threads.

    `changed` is called when the job has to be saved. `goes_on` means that the next server continues the job if this one
    stops before its end; `used` are the calls and the US dollars that it has used before.
    """

    def __init__(self, record: JobRecord, changed: Callable[[Job], None]) -> None:
        self.record = record
        self.run: Execution | None = None
        self.task: asyncio.Task[None] | None = None
        self.goes_on = True
        self.used: tuple[int, float] = (0, 0.0)
        self._changed = changed
        self._events: deque[JobEvent] = deque(maxlen=KEPT)
        self._last = 0
        self._ended = record.over
        self._noted = 0.0
        self._followers: set[Callable[[], object]] = set()
        self._lock = Lock()

    async def on(self, event: Event) -> None:
        """Take one event of the run."""
        match event:
            case RunStarted():
                named = {"run": event.run.id, "grading": event.grading.id, "planned": event.planned}
                self.update(status="running", done=event.done, **named)
                self._emit("started", job=self.record)
            case AttemptStarted():
                self._emit("held", **_of(event.key))
            case TurnEnded():
                self._emit("turn", **_of(event.key), turn=event.turn.index, messages=_message_news(event.turn))
            case AttemptEnded():
                scores = _scores(event.outcome)
                broken = any(score.state == "error" for score in scores)
                counted = {"done": self.record.done + 1, "errors": self.record.errors + broken}
                self._set(**counted)
                if time.monotonic() > self._noted + NOTED:
                    self._noted = time.monotonic()
                    self._changed(self)
                self._emit("graded", **_of(event.outcome.attempt.key), scores=scores)
            case RunEnded():
                self._set(verdict=event.grading.verdict)

    def update(self, **values: Any) -> None:
        """Update the record of the job, and save it."""
        self._set(**values)
        self._changed(self)

    def end(self, **values: Any) -> None:
        """Close the job: no more events follow."""
        try:
            self.update(**values)
        finally:
            self._emit("ended", job=self.record)

    def cancel(self) -> None:
        """Record that no server is to continue it, unless it is over."""
        with self._lock:
            if self.record.over:
                return
            self.goes_on = False
            self.record = self.record.model_copy(update={"detail": "cancelled"})
        self._changed(self)

    def stop(self) -> None:
        """Stop it after the conversations in progress; a second call stops these, too."""
        if self.run is not None and self.record.status == "running":
            self.run.stop()
        elif self.task is not None:
            self.task.cancel()

    async def follow(self, after: int = 0) -> AsyncGenerator[JobEvent]:
        """Yield the events after a given one, past and future, until the job is over."""
        news = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, news.set)
        self._followers.add(wake)
        try:
            while True:
                news.clear()
                over = self._ended
                for event in self.since(after):
                    yield event
                    after = event.id
                if over:
                    return
                await news.wait()
        finally:
            self._followers.discard(wake)

    def since(self, after: int) -> list[JobEvent]:
        """Return the kept events after an id; all of them for an id that does not exist yet."""
        with self._lock:
            missed = self._last - after if 0 <= after <= self._last else len(self._events)
            return list(islice(self._events, max(0, len(self._events) - missed), None))

    def _set(self, **values: Any) -> None:
        with self._lock:
            self.record = self.record.model_copy(update=values)

    def _emit(self, kind: str, **more: Any) -> None:
        record = self.record
        with self._lock:
            self._last += 1
            counts = {"done": record.done, "errors": record.errors, "planned": record.planned}
            self._events.append(JobEvent.model_validate({"id": self._last, "kind": kind, **counts, **more}))
            self._ended = kind == "ended"
        for wake in list(self._followers):
            with suppress(RuntimeError):  # the loop of that follower has ended, and it with it
                wake()


def _of(key: AttemptKey) -> dict[str, Any]:
    return key._asdict()


def _message_news(turn: Turn) -> list[MessageNews]:
    return [
        MessageNews(role=one.role, text=shorten(one.text, SHOWN) or "", calls=[call.name for call in tool_calls([one])])
        for one in turn.messages
    ]


def _scores(outcome: Outcome) -> list[ScoreEntry]:
    scored = [("grade", name, score) for name, score in outcome.scores.items()]
    rewards = [] if outcome.reward is None else [("reward", "reward", outcome.reward)]
    return [
        ScoreEntry.model_validate(
            {
                "kind": kind,
                "name": name,
                "state": one.state,
                "value": one.value,
                "passed": one.passed,
                "reason": shorten(one.reason, SHOWN),
                "failure": one.failure,
            }
        )
        for kind, name, one in (*scored, *rewards)
    ]
