from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.pacing.limiter import Limiter


def now() -> float:
    return asyncio.get_running_loop().time()


async def hold(limiter: Limiter, seconds: float) -> float:
    async with limiter:
        started = now()
        await asyncio.sleep(seconds)
    return started


async def test_no_more_calls_run_than_the_limit() -> None:
    limiter = Limiter(2)
    starts = await asyncio.gather(*(hold(limiter, 1) for _ in range(5)))
    assert starts == [0, 0, 1, 1, 2]
    assert (limiter.peak, limiter.in_flight) == (2, 0)


@given(
    limit=st.integers(1, 4),
    calls=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.none() | st.integers(0, 9)), max_size=20),
)
async def test_slots_are_given_in_order_and_none_is_lost_whoever_is_cancelled(
    limit: int, calls: list[tuple[int, int, int | None]]
) -> None:
    limiter = Limiter(limit)
    asked: list[int] = []
    started: dict[int, float] = {}
    finished: list[int] = []

    async def run(name: int, begin: int, length: int) -> None:
        await asyncio.sleep(begin)
        asked.append(name)
        async with limiter:
            started[name] = now()
            assert limiter.in_flight <= limit
            await asyncio.sleep(length)
        finished.append(name)

    tasks = [asyncio.create_task(run(name, begin, length)) for name, (begin, length, _) in enumerate(calls)]
    for task, (_, _, cancel_at) in zip(tasks, calls, strict=True):
        if cancel_at is not None:
            asyncio.get_running_loop().call_later(cancel_at, task.cancel)
    await asyncio.gather(*tasks, return_exceptions=True)

    starts = [started[name] for name in asked if name in started]
    assert starts == sorted(starts)
    assert set(finished) >= {name for name, (_, _, cancel_at) in enumerate(calls) if cancel_at is None}
    assert limiter.in_flight == 0
    assert await asyncio.gather(*(hold(limiter, 1) for _ in range(limit))) == [now() - 1] * limit


async def test_a_slot_given_to_a_call_that_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    cancelled, following = asyncio.create_task(hold(limiter, 1)), asyncio.create_task(hold(limiter, 1))
    await asyncio.sleep(0)
    limiter.release()
    cancelled.cancel()
    assert await following == 0
    assert cancelled.cancelled()
    assert limiter.in_flight == 0


async def test_a_rate_limit_leaves_four_fifths_and_at_least_one() -> None:
    limiter = Limiter(10)
    seen: list[int] = []
    for _ in range(9):
        async with limiter:
            limiter.slow_down()
        seen.append(limiter.current)
    assert seen == [8, 6, 4, 3, 2, 1, 1, 1, 1]
    assert limiter.ceiling == 10


async def test_calls_in_flight_together_shrink_the_limit_once() -> None:
    limiter = Limiter(10)

    async def limited() -> None:
        async with limiter:
            await asyncio.sleep(1)
            limiter.slow_down()

    await asyncio.gather(*(limited() for _ in range(10)))
    assert limiter.current == 8
    await asyncio.gather(*(limited() for _ in range(8)))
    assert limiter.current == 6


async def test_after_shrinking_calls_start_only_below_the_new_limit() -> None:
    limiter = Limiter(5)
    running = [asyncio.create_task(hold(limiter, length)) for length in (1, 2, 3, 4, 5)]
    await asyncio.sleep(0)
    limiter.slow_down()
    assert await hold(limiter, 0) == 2
    await asyncio.gather(*running)


async def test_nobody_starts_before_retry_after() -> None:
    limiter = Limiter(2)
    await limiter.acquire()
    limiter.slow_down(30)
    limiter.slow_down(10)
    limiter.release()
    assert await asyncio.gather(hold(limiter, 1), hold(limiter, 1)) == [30, 31]


async def test_a_longer_retry_after_replaces_a_shorter_one() -> None:
    limiter = Limiter(2)
    limiter.slow_down(10)
    limiter.slow_down(30)
    assert await hold(limiter, 0) == 30


async def test_successes_with_every_slot_in_use_grow_the_limit_back_to_its_ceiling() -> None:
    limiter = Limiter(4)
    limiter.slow_down()
    limiter.slow_down()
    seen: list[int] = []

    async def succeed() -> None:
        async with limiter:
            await asyncio.sleep(1)
            limiter.succeeded()
            seen.append(limiter.current)

    await asyncio.gather(*(succeed() for _ in range(12)))
    assert seen == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]
    assert limiter.peak == 4


async def test_a_slot_that_is_added_goes_at_once_to_a_call_that_waits() -> None:
    limiter = Limiter(2)
    limiter.slow_down()
    await limiter.acquire()
    waiting = asyncio.create_task(hold(limiter, 1))
    await asyncio.sleep(3)
    limiter.succeeded()
    assert await waiting == 3


async def test_after_shrinking_successes_are_counted_anew() -> None:
    limiter = Limiter(4)
    for _ in range(4):
        await limiter.acquire()
    limiter.slow_down()
    seen: list[int] = []
    good, bad = limiter.succeeded, limiter.slow_down
    for take_note in (good, good, bad, good, good, good):
        take_note()
        seen.append(limiter.current)
    assert seen == [3, 3, 3, 3, 3, 4]


async def test_successes_without_load_do_not_grow_the_limit() -> None:
    limiter = Limiter(4)
    limiter.slow_down()
    for _ in range(20):
        async with limiter:
            limiter.succeeded()
    assert limiter.current == 3


async def test_a_failing_call_gives_its_slot_back() -> None:
    limiter = Limiter(1)
    with pytest.raises(KeyError):
        async with limiter:
            raise KeyError
    assert limiter.in_flight == 0


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Limiter(0)


def test_a_slot_that_nobody_holds_cannot_be_released() -> None:
    with pytest.raises(RuntimeError, match="was not held"):
        Limiter(1).release()


async def test_a_wait_that_is_abandoned_takes_no_slot() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    waiting = limiter.acquire()
    waiting.send(None)
    waiting.close()
    limiter.release()
    assert limiter.in_flight == 0


async def test_who_comes_when_a_pause_just_ended_overtakes_nobody() -> None:
    limiter = Limiter(1)
    limiter.slow_down(5)
    waiting = asyncio.create_task(hold(limiter, 1))
    await asyncio.sleep(5)
    assert [await hold(limiter, 1), await waiting] == [6, 5]


def test_a_pause_outlives_the_loop_that_it_began_in() -> None:
    limiter = Limiter(1)

    async def pause() -> None:
        async with limiter:
            limiter.slow_down(0.01)

    async def wait() -> None:
        async with asyncio.timeout(20), limiter:
            pass

    asyncio.run(pause())
    asyncio.run(wait())


def test_threads_share_a_limiter_and_none_is_forgotten() -> None:
    limiter = Limiter(2)
    done: list[int] = []

    async def work(name: int) -> None:
        async with limiter:
            await asyncio.sleep(0.001)
            limiter.slow_down(0.001) if name % 7 == 0 else limiter.succeeded()
        done.append(name)

    async def all_of(names: range) -> None:
        tasks = [asyncio.create_task(work(name)) for name in names]
        tasks[-1].cancel()
        await asyncio.wait(tasks, timeout=60)

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(asyncio.run, all_of(range(first, first + 10))) for first in range(0, 80, 10)]
        for thread in running:
            thread.result(timeout=60)
    assert sorted(done) == [name for name in range(80) if name % 10 != 9]
    assert limiter.in_flight == 0
