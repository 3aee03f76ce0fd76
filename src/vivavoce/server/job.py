"""A job at work: it listens to its run, counts, and tells whoever follows it."""

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
from vivavoce.server.job_record import JobEvent, JobRecord, Said
from vivavoce.store.browse.listing import ScoreEntry

KEPT = 2000
"""Events that are kept for those who come later; each says how far the job is, so that the older ones can go."""

NOTED = 1.0
"""Seconds after which it is kept anew how far a job is."""

SHOWN = 4000
"""Characters of a message, and of a reason, that an event holds."""


class Job:
    """One job; its run tells it what happens in one thread, and others follow it from theirs.

    `changed` is called when something about it is to be kept. `goes_on` says that it is to be taken up by the next
    server where this one ends before it is over; `used` are the calls and the US dollars that it cost before.
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
                self._tell("started", job=self.record)
            case AttemptStarted():
                self._tell("held", **_of(event.key))
            case TurnEnded():
                self._tell("turn", **_of(event.key), turn=event.turn.index, messages=_said(event.turn))
            case AttemptEnded():
                scores = _scores(event.outcome)
                broken = any(score.state == "error" for score in scores)
                counted = {"done": self.record.done + 1, "errors": self.record.errors + broken}
                self._set(**counted)
                if time.monotonic() > self._noted + NOTED:
                    self._noted = time.monotonic()
                    self._changed(self)
                self._tell("graded", **_of(event.outcome.attempt.key), scores=scores)
            case RunEnded():
                self._set(verdict=event.grading.verdict)

    def update(self, **values: Any) -> None:
        """Change what is told of the job, and keep it."""
        self._set(**values)
        self._changed(self)

    def end(self, **values: Any) -> None:
        """Say that nothing more comes of it."""
        try:
            self.update(**values)
        finally:
            self._tell("ended", job=self.record)

    def cancel(self) -> None:
        """Keep that nobody is to go on with it, unless it is over."""
        with self._lock:
            if self.record.over:
                return
            self.goes_on = False
            self.record = self.record.model_copy(update={"detail": "cancelled"})
        self._changed(self)

    def stop(self) -> None:
        """Have it begin nothing more and finish what is in flight; a second time, drop that too."""
        if self.run is not None and self.record.status == "running":
            self.run.stop()
        elif self.task is not None:
            self.task.cancel()

    async def follow(self, after: int = 0) -> AsyncGenerator[JobEvent]:
        """Yield what happened since an event, and what happens, until the job is over."""
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
        """Return the events after one, as far as they are kept; all of them for a number that none has had yet."""
        with self._lock:
            missed = self._last - after if 0 <= after <= self._last else len(self._events)
            return list(islice(self._events, max(0, len(self._events) - missed), None))

    def _set(self, **values: Any) -> None:
        with self._lock:
            self.record = self.record.model_copy(update=values)

    def _tell(self, kind: str, **more: Any) -> None:
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


def _said(turn: Turn) -> list[Said]:
    return [
        Said(role=one.role, text=shorten(one.text, SHOWN) or "", calls=[call.name for call in tool_calls([one])])
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
