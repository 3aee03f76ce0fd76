"""A job at work on this server: it listens to the process of its run, counts, and sends events to its followers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Protocol

from vivavoce.server.job_news import JobNews
from vivavoce.server.job_record import JobEvent, JobRecord
from vivavoce.store.jobs.queue import KEPT


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
        self._events: deque[JobEvent] = deque(maxlen=KEPT)
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
        """Take note that it was cancelled so many times in all, and return how many of these are new."""
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

    async def follow(self, after: int = 0) -> AsyncGenerator[JobEvent]:
        """Yield the events after a given one, past and future, until the job is over or another server has it."""
        news = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, news.set)
        self._followers.add(wake)
        try:
            while True:
                news.clear()
                over = self._ended or self.lost
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
            return list(self._events) if after > self._last else [one for one in self._events if one.id > after]

    def to_save(self) -> list[JobEvent]:
        """Return the events that are not saved yet; `saved` says that they are.

        The end is none of them: who reads the record of a job that is over knows it.
        """
        with self._lock:
            self._dirty = False
            return [one for one in self._events if one.id > self._saved and one.kind != "ended"]

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
            self._events.append(JobEvent.model_validate({"id": self._last, "kind": kind, **counts, **more}))
            self._ended = kind == "ended"
            self._dirty = self._dirty or not self._ended
        self._wake()

    def _wake(self) -> None:
        for wake in list(self._followers):
            with suppress(RuntimeError):  # the loop of that follower has ended, and it with it
                wake()
