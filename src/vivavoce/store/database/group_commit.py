"""Committing many items at once in a thread of its own, while event loops go on making more of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sqlalchemy import Connection

from vivavoce.errors import StoreError
from vivavoce.store.database.database import Database

BATCH = 100
"""Items that are committed without waiting for more."""
WINDOW = 0.05
"""Seconds that an item waits at most for others to be committed with it."""
PENDING = 1000
"""Items not yet committed at which `put` waits."""

T = TypeVar("T")
Contra = TypeVar("Contra", contravariant=True)


class Commits(Protocol[Contra]):
    """What commits a batch; `stored` counts the items that it has committed, also those of a batch that failed."""

    stored: int

    def store(self, connection: Connection, batch: Sequence[Contra]) -> None:
        """Commit a batch."""
        ...


@dataclass(frozen=True, slots=True)
class Items:
    """What the items are called: one of them, several, the thread that commits them, and what takes no more of them."""

    one: str
    several: str
    thread: str
    closed: str


class GroupCommit(Generic[T]):
    """Takes items on any event loop and commits them in a thread of its own, in the order of `put`.

    After an error nothing more is written, and every call raises it: what was not stored is never passed over.
    """

    def __init__(self, database: Database, committer: Commits[T], items: Items) -> None:
        self._database = database
        self._committer = committer
        self._items = items
        self._changed = threading.Condition()
        self._queue: list[T] = []
        self._oldest = 0.0
        self._taken = 0
        self._hurry = self._closing = False
        self._error: str | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._thread: threading.Thread | None = None

    async def put(self, item: T) -> None:
        """Queue an item; waits while too many are pending.

        Raises:
            StoreError: an earlier one could not be written, or this is closed.
        """
        await self.room()
        self.add(item)

    async def room(self) -> None:
        """Wait until not too many are pending.

        Raises:
            StoreError: an earlier one could not be written, or this is closed.
        """
        if self._error is not None or self._taken - self._committer.stored >= PENDING:
            await self._until(lambda: self._taken - self._committer.stored < PENDING)

    def add(self, item: T) -> None:
        """Queue an item, however many are pending.

        Raises:
            StoreError: this is closed.
        """
        with self._changed:
            self._check_open()
            self._taken += 1
            self._queue.append(item)
            if len(self._queue) == 1:
                self._oldest = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._items.thread, daemon=True)
                self._thread.start()
            elif len(self._queue) in (1, BATCH):
                self._changed.notify_all()

    async def drain(self) -> None:
        """Wait until everything put so far is committed.

        Raises:
            StoreError: something could not be written.
        """
        await self._until(self._everything())

    def settle(self) -> None:
        """Drain where no event loop runs, or where it may be held up.

        Raises:
            StoreError: something could not be written.
        """
        committed = self._everything()
        with self._changed:
            self._changed.wait_for(lambda: committed() or self._error)
        self._check()

    async def close(self) -> None:
        """Commit what is left and end the thread; a second call changes nothing.

        Raises:
            StoreError: something could not be written.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None and self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
        self._check()

    def _everything(self) -> Callable[[], bool]:
        """Have the thread wait no longer, and return what says whether all that was put before is committed."""
        with self._changed:
            goal = self._taken
            self._hurry = True
            self._changed.notify_all()
        return lambda: self._committer.stored >= goal

    async def _until(self, done: Callable[[], bool]) -> None:
        while self._error is None and not done():
            moved = asyncio.get_running_loop().create_future()
            with self._changed:
                if self._error is not None or done():
                    break
                self._waiting.append(moved)
            await moved
        self._check()

    def _check_open(self) -> None:
        if self._closing:
            raise StoreError(f"{self._database.place}: {self._items.closed}")

    def _check(self) -> None:
        if self._error is not None:
            raise StoreError(self._error)

    # What follows runs in the thread.

    def _work(self) -> None:
        try:
            with self._database.apart() as connection:
                while batch := self._take():
                    self._committer.store(connection, batch)
                    self._tell()
        except Exception as error:  # whatever it was, the callers have to hear of it
            lost = self._taken - self._committer.stored
            self._error = f"{error} ({lost} {self._items.one if lost == 1 else self._items.several} not stored)"
            self._tell()

    def _take(self) -> list[T]:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            if self._queue:
                self._changed.wait_for(self._is_due, max(0.0, self._oldest + WINDOW - time.monotonic()))
            batch, self._queue, self._hurry = self._queue, [], False
            return batch

    def _is_due(self) -> bool:
        return len(self._queue) >= BATCH or self._hurry or self._closing

    def _tell(self) -> None:
        with self._changed:
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for moved in waiting:
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                moved.get_loop().call_soon_threadsafe(_wake, moved)


def _wake(moved: asyncio.Future[None]) -> None:
    if not moved.done():
        moved.set_result(None)
