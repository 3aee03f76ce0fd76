from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import BudgetExhausted, UsageError
from vivavoce.pacing.limits import Budget, Limiter


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
    amounts: list[int] = []
    started: dict[int, float] = {}
    finished: list[int] = []

    async def run(name: int, begin: int, length: int) -> None:
        await asyncio.sleep(begin)
        amounts.append(name)
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

    starts = [started[name] for name in amounts if name in started]
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

    async def limit_calls() -> None:
        async with limiter:
            await asyncio.sleep(1)
            limiter.slow_down()

    await asyncio.gather(*(limit_calls() for _ in range(10)))
    assert limiter.current == 8
    await asyncio.gather(*(limit_calls() for _ in range(8)))
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
            limiter.record_success()
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
    limiter.record_success()
    assert await waiting == 3


async def test_after_shrinking_successes_are_counted_anew() -> None:
    limiter = Limiter(4)
    for _ in range(4):
        await limiter.acquire()
    limiter.slow_down()
    seen: list[int] = []
    good, bad = limiter.record_success, limiter.slow_down
    for take_note in (good, good, bad, good, good, good):
        take_note()
        seen.append(limiter.current)
    assert seen == [3, 3, 3, 3, 3, 4]


async def test_successes_without_load_do_not_grow_the_limit() -> None:
    limiter = Limiter(4)
    limiter.slow_down()
    for _ in range(20):
        async with limiter:
            limiter.record_success()
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
            limiter.slow_down(0.001) if name % 7 == 0 else limiter.record_success()
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


async def spend(budget: Budget, estimate: float | None, cost: float | None) -> bool:
    try:
        reservation = budget.reserve(estimate)
    except BudgetExhausted:
        return False
    await asyncio.sleep(1)
    budget.settle(reservation, cost)
    return True


async def test_fifty_parallel_calls_cannot_overshoot_the_calls() -> None:
    budget = Budget(max_calls=7)
    reservations = await asyncio.gather(*(spend(budget, None, None) for _ in range(50)))
    assert (sum(reservations), budget.calls) == (7, 7)
    assert budget.exhausted


async def test_fifty_parallel_calls_cannot_overshoot_the_cost() -> None:
    budget = Budget(max_cost=0.3)
    reservations = await asyncio.gather(*(spend(budget, 0.1, 0.1) for _ in range(50)))
    assert sum(reservations) == 3
    assert budget.cost == pytest.approx(0.3)
    assert budget.exhausted


def test_what_a_call_did_not_use_is_free_again() -> None:
    budget = Budget(max_cost=1.0)
    budget.settle(budget.reserve(0.9), cost=0.2)
    assert budget.cost == pytest.approx(0.2)
    budget.reserve(0.8)
    with pytest.raises(BudgetExhausted, match=r"may cost \$0\.1, and \$1 of \$1 is spent"):
        budget.reserve(0.1)


def test_an_unknown_cost_leaves_the_estimate_standing() -> None:
    budget = Budget(max_cost=1.0)
    budget.settle(budget.reserve(0.9), cost=None)
    assert budget.cost == pytest.approx(0.9)


@pytest.mark.parametrize("cost", [-5.0, float("nan"), float("inf")])
def test_a_cost_that_is_no_amount_of_money_leaves_the_estimate_standing(cost: float) -> None:
    budget = Budget(max_cost=1.0)
    budget.settle(budget.reserve(0.9), cost=cost)
    assert budget.cost == pytest.approx(0.9)


def test_a_budget_used_to_the_last_call_is_not_exhausted_until_one_more_is_asked_for() -> None:
    budget = Budget(max_calls=1)
    budget.settle(budget.reserve(), cost=None)
    assert not budget.exhausted
    with pytest.raises(BudgetExhausted, match="limit of 1 calls"):
        budget.reserve()
    assert budget.exhausted
    assert budget.calls == 1


def test_an_unknown_price_cannot_be_bounded() -> None:
    budget = Budget(max_cost=1.0)
    with pytest.raises(UsageError, match="price of the model is unknown"):
        budget.reserve(None)
    assert (budget.calls, budget.exhausted) == (0, False)


@pytest.mark.parametrize("limit", [-0.01, float("nan")])
def test_a_limit_that_is_no_amount_of_money_is_refused(limit: float) -> None:
    with pytest.raises(UsageError, match="0 or more US dollars"):
        Budget(max_cost=limit)


async def use(budget: Budget, estimate: float, cost: float) -> bool:
    try:
        reservation = await budget.admit(estimate)
    except BudgetExhausted:
        return False
    await asyncio.sleep(1)
    budget.settle(reservation, cost)
    return True


async def test_calls_wait_for_room_that_calls_in_flight_may_give_back() -> None:
    budget = Budget(max_cost=1.0)
    reservations = await asyncio.gather(*(use(budget, 0.5, 0.1) for _ in range(50)))
    assert sum(reservations) == 6
    assert budget.cost == pytest.approx(0.6)
    assert budget.exhausted


async def test_a_call_that_can_never_fit_does_not_wait() -> None:
    budget = Budget(max_cost=1.0)
    budget.reserve(0.5)
    with pytest.raises(BudgetExhausted, match=r"may cost \$2"):
        await budget.admit(2.0)


async def test_a_call_that_gives_up_waiting_is_forgotten() -> None:
    budget = Budget(max_cost=1.0)
    reservation = budget.reserve(1.0)
    waiting = asyncio.create_task(budget.admit(0.5))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    budget.settle(reservation, 0.0)
    assert (budget.calls, budget.cost) == (1, 0.0)


async def test_where_the_cost_is_not_limited_nothing_waits() -> None:
    budget = Budget(max_calls=2)
    for estimate in (5.0, None):
        await budget.admit(estimate)
    assert (budget.calls, budget.limits_cost, Budget(max_cost=0).limits_cost) == (2, False, True)


def test_without_limits_everything_is_allowed_and_counted() -> None:
    budget = Budget()
    for cost in (None, 5.0):
        budget.settle(budget.reserve(), cost)
    assert (budget.calls, budget.cost) == (2, 5.0)


def test_a_reservation_is_settled_once() -> None:
    budget = Budget()
    reservation = budget.reserve(1.0)
    budget.settle(reservation, 1.0)
    with pytest.raises(ValueError, match="not open"):
        budget.settle(reservation, 1.0)
    assert budget.cost == 1.0
