"""A pool of workers: as many items at a time as there are workers, and none after it was told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from vivavoce.errors import BudgetExhausted
from vivavoce.run.workers import INTERRUPTED, WorkerPool


async def endless() -> AsyncIterator[int]:
    number = 0
    while True:
        await asyncio.sleep(0)
        yield number
        number += 1


async def test_items_are_worked_on_once_and_so_many_at_a_time() -> None:
    at_work = most = 0
    seen: list[int] = []

    async def work(item: int) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        seen.append(item)
        at_work -= 1

    await WorkerPool(3).run(iter(range(20)), work)
    assert (sorted(seen), most) == (list(range(20)), 3)


async def test_a_crew_that_was_told_to_stop_takes_no_item_that_it_waits_for() -> None:
    workers = WorkerPool(10)
    seen: list[int] = []

    async def work(item: int) -> None:
        seen.append(item)
        if item == 4:
            workers.stop()

    await workers.run(endless(), work)
    assert seen == [0, 1, 2, 3, 4]
    assert (workers.stopped_by, workers.at_work) == (INTERRUPTED, 0)


async def test_an_item_that_is_not_begun_yet_is_nothing_to_finish() -> None:
    workers, begin = WorkerPool(3), asyncio.Semaphore(1)
    told: list[int] = []

    async def work(item: int) -> None:
        with workers.waiting():
            await begin.acquire()
        try:
            await asyncio.sleep(0)
            if workers.stopped_by is None:
                workers.stop()
                told.append(workers.at_work)
        finally:
            begin.release()

    await workers.run(iter(range(3)), work)
    assert told == [1]


async def test_a_second_stop_drops_what_is_in_work() -> None:
    workers = WorkerPool(2)
    begun = asyncio.Event()

    async def hang(item: int) -> None:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(workers.run(iter(range(5)), hang))
    await begun.wait()
    workers.stop()
    assert workers.at_work == 2
    workers.stop()
    await running
    assert (workers.stopped_by, workers.at_work) == (INTERRUPTED, 0)


async def test_an_exhausted_budget_ends_it_without_an_exception() -> None:
    workers = WorkerPool(2)

    async def work(item: int) -> None:
        if item == 3:
            raise BudgetExhausted("the limit is reached")

    await workers.run(endless(), work)
    assert workers.stopped_by == "the limit is reached"


async def test_what_work_or_the_source_raises_comes_through() -> None:
    async def work(item: int) -> None:
        raise KeyError(item)

    with pytest.raises(KeyError):
        await WorkerPool(4).run(iter(range(9)), work)

    async def broken() -> AsyncIterator[int]:
        yield 1
        raise OSError("gone")

    async def nothing(item: int) -> None:
        return

    workers = WorkerPool(4)
    with pytest.raises(OSError, match="gone"):
        await workers.run(broken(), nothing)
    assert workers.stopped_by == "OSError: gone"
