"""`WorkerPool`: workers that take items from one source until it is empty or they are told to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

from vivavoce.errors import BudgetExhausted

T = TypeVar("T")
INTERRUPTED = "interrupted"
ALONE = 0.005
"""Seconds that a worker may go on without letting others in."""


class WorkerPool:
    """Works on items, `workers` at a time; memory holds only the items that are worked on.

    `stopped_by` says why it ended early: `interrupted`, or what the budget said; None when it came to the end.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self.stopped_by: str | None = None
        self._dropped = False
        self._one_at_a_time = asyncio.Lock()

    @property
    def at_work(self) -> int:
        """How many workers have something to finish."""
        return sum(not task.done() for task in self._tasks) - self._waiting

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Say of a worker that its item is not begun yet, and would be left where the work is stopped."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def stop(self, why: str = INTERRUPTED) -> None:
        """Take no further item; what is in work is finished. Told a second time, drop that as well."""
        if self.stopped_by is None:
            self.stopped_by = why
            return
        self._dropped = True
        for task in self._tasks:
            task.cancel()

    async def run(self, items: Iterator[T] | AsyncIterator[T], work: Callable[[T], Awaitable[None]]) -> None:
        """Work on every item; one that is waited for is waited for by one worker at a time.

        Raises:
            Exception: the first one that `work` raised; the items in work at that moment are finished before.
        """
        self._tasks = {asyncio.create_task(self._work(items, work)) for _ in range(self._workers)}
        try:
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for task in self._tasks:
                task.cancel()
        for result in results:
            if isinstance(result, BaseException) and not (self._dropped and isinstance(result, asyncio.CancelledError)):
                raise result

    async def _work(self, items: Iterator[T] | AsyncIterator[T], work: Callable[[T], Awaitable[None]]) -> None:
        since = time.monotonic()
        try:
            while self.stopped_by is None:
                item = next(items, _END) if isinstance(items, Iterator) else await self._next(items)
                if item is _END:
                    return
                await work(item)  # pyright: ignore[reportArgumentType]
                now = time.monotonic()
                if now - since > ALONE:
                    await asyncio.sleep(0)  # work that never waits must not keep the others, and signals, out
                    since = time.monotonic()
        except BudgetExhausted as error:
            self.stopped_by = self.stopped_by or str(error)
        except Exception as error:
            self.stopped_by = self.stopped_by or f"{type(error).__name__}: {error}"
            raise

    async def _next(self, items: AsyncIterator[T]) -> object:
        """Wait for an item; one that comes after the end was called is left, as if it had never come."""
        with self.waiting():
            async with self._one_at_a_time:
                item = _END if self.stopped_by is not None else await anext(items, _END)
        return _END if self.stopped_by is not None else item


_END = object()
