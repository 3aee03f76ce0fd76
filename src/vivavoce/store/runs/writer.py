"""Writing outcomes while a run goes on: many in one commit, each of them whole or not at all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from sqlalchemy import Engine

from vivavoce.errors import StoreError
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.store.database.database import plain_errors
from vivavoce.store.runs.committing import Committer
from vivavoce.store.runs.encode import Encoder, Entry
from vivavoce.store.runs.ids import attempt_ids

BATCH = 100
"""Outcomes that are committed without waiting for more."""
WINDOW = 0.05
"""Seconds that an outcome waits at most for others to be committed with it."""
PENDING = 1000
"""Outcomes not yet committed at which `put` waits."""


class OutcomeWriter:
    """Takes outcomes on the event loop and commits them in a thread of its own, in the order of `put`.

    After an error nothing more is written, and every call raises it: what was not stored is never passed over.
    """

    def __init__(self, engine: Engine, place: str, encoder: Encoder, *, replaces: bool = False) -> None:
        self._engine = engine
        self._place = place
        self._encoder = encoder
        self._committer = Committer(place, encoder.run_id, attempt_ids(), replaces=replaces)
        self._changed = threading.Condition()
        self._queue: list[Entry] = []
        self._oldest = 0.0
        self._taken = 0
        self._hurry = self._closing = False
        self._error: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._moved = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="vivavoce-store", daemon=True)

    async def put(self, outcome: Outcome) -> None:
        """Queue an outcome; waits while too many are pending.

        Raises:
            StoreError: this outcome cannot be written, or an earlier one could not.
        """
        await self._put(self._encoder.outcome(outcome))

    async def put_scores(self, key: AttemptKey, scores: Mapping[str, Score], reward: Score | None) -> None:
        """Queue new scores of an attempt that is in the store.

        Raises:
            StoreError: as `put`, and later when the store has no such attempt.
        """
        await self._put(self._encoder.scores(key, scores, reward))

    async def drain(self) -> None:
        """Wait until everything put so far is committed.

        Raises:
            StoreError: something could not be written.
        """
        goal = self._taken
        with self._changed:
            self._hurry = True
            self._changed.notify()
        while self._committer.stored < goal and self._error is None:
            await self._movement()
        self._check()

    async def close(self) -> None:
        """Commit what is left and end the thread; a second call changes nothing.

        Raises:
            StoreError: something could not be written.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        self._check()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _put(self, entry: Entry) -> None:
        self._check()
        while self._taken - self._committer.stored >= PENDING:
            await self._movement()
            self._check()
        if self._closing:
            raise StoreError(f"{self._place}: this writer is closed")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread.start()
        with self._changed:
            self._taken += 1
            self._queue.append(entry)
            if len(self._queue) == 1:
                self._oldest = time.monotonic()
            if len(self._queue) in (1, BATCH):
                self._changed.notify()

    async def _movement(self) -> None:
        self._moved.clear()
        await self._moved.wait()

    def _check(self) -> None:
        if self._error is not None:
            raise StoreError(self._error)

    # What follows runs in the thread.

    def _work(self) -> None:
        try:
            with plain_errors(self._place), self._engine.connect() as connection:
                while batch := self._take():
                    self._committer.store(connection, batch)
                    self._tell()
        except Exception as error:  # whatever it was, the event loop has to hear of it
            lost = self._taken - self._committer.stored
            self._error = f"{error} ({lost} outcome{'s' * (lost != 1)} not stored)"
            self._tell()

    def _take(self) -> list[Entry]:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            if self._queue:
                self._changed.wait_for(self._is_due, max(0.0, self._oldest + WINDOW - time.monotonic()))
            batch, self._queue, self._hurry = self._queue, [], False
            return batch

    def _is_due(self) -> bool:
        return len(self._queue) >= BATCH or self._hurry or self._closing

    def _tell(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(self._moved.set)
