from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from vivavoce.errors import Fault, GraderFault, ModelFault, RateLimited, TargetFault
from vivavoce.pacing.limits import Breaker, Limiter, retrying


def now() -> float:
    return asyncio.get_running_loop().time()


class Script:
    """A call that does what the script says, and keeps the time of each try."""

    def __init__(self, *outcomes: Exception | str) -> None:
        self.outcomes = list(outcomes)
        self.times: list[float] = []

    async def __call__(self) -> str:
        self.times.append(now())
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def passing(message: str = "connection reset") -> TargetFault:
    return TargetFault(message, kind="connection", retryable=True)


async def test_a_call_that_succeeds_is_made_once() -> None:
    call = Script("yes")
    assert await retrying(call) == "yes"
    assert call.times == [0]


@pytest.mark.parametrize("fault", [passing(), ModelFault("overloaded", retryable=True)])
async def test_a_failure_that_may_pass_is_tried_again_after_waits_that_double(fault: Fault) -> None:
    call = Script(fault, fault, fault, "yes")
    assert await retrying(call, draw=lambda: 1.0) == "yes"
    assert call.times == [0, 0.5, 1.5, 3.5]


async def test_jitter_takes_a_part_of_each_wait() -> None:
    parts = iter([0.5, 0.0])
    call = Script(passing(), passing(), "yes")
    await retrying(call, draw=lambda: next(parts))
    assert call.times == [0, 0.25, 0.25]


@pytest.mark.parametrize("error", [TargetFault("no"), ModelFault("no"), GraderFault("no"), KeyError("no")])
async def test_any_other_failure_is_raised_at_once(error: Exception) -> None:
    call = Script(error)
    with pytest.raises(type(error), match="no"):
        await retrying(call)
    assert call.times == [0]


async def test_the_last_failure_is_raised_when_the_tries_are_used_up() -> None:
    call = Script(passing("first"), passing("second"), passing("third"))
    with pytest.raises(TargetFault, match="third"):
        await retrying(call, tries=3)
    assert len(call.times) == 3


async def test_a_wait_beyond_the_total_is_not_begun() -> None:
    call = Script(*(passing() for _ in range(10)))
    with pytest.raises(TargetFault):
        await retrying(call, tries=10, max_wait=4.0, draw=lambda: 1.0)
    assert call.times == [0, 0.5, 1.5, 3.5]
    assert now() == 3.5


async def test_retry_after_is_waited_exactly() -> None:
    call = Script(RateLimited("slow", retry_after=17.25), "yes")
    await retrying(call, draw=lambda: 0.0)
    assert call.times == [0, 17.25]


async def test_a_rate_limit_without_a_time_waits_like_any_failure() -> None:
    call = Script(RateLimited("slow"), "yes")
    await retrying(call, draw=lambda: 1.0)
    assert call.times == [0, 0.5]


async def test_a_rate_limit_slows_every_call_of_the_limiter_down() -> None:
    limiter = Limiter(10)
    await retrying(Script(RateLimited("slow", retry_after=5), "yes"), limiter=limiter)
    assert (limiter.current, now()) == (8, 5)


async def test_others_wait_no_longer_than_max_wait_for_a_limit_that_asks_for_hours() -> None:
    limiter, other = Limiter(2), Script("yes")
    with pytest.raises(RateLimited):
        await retrying(Script(RateLimited("tomorrow", retry_after=86400)), limiter=limiter)
    await retrying(other, limiter=limiter)
    assert other.times == [60]


async def test_a_call_that_waits_holds_no_slot() -> None:
    limiter, other = Limiter(1), Script("yes")
    waiting = asyncio.create_task(retrying(Script(passing(), "yes"), limiter=limiter, draw=lambda: 1.0))
    await asyncio.sleep(0.1)
    await retrying(other, limiter=limiter)
    assert other.times == [0.1]
    assert await waiting == "yes"


async def test_successes_are_told_to_the_limiter() -> None:
    limiter = Limiter(2)
    limiter.slow_down()
    await retrying(Script("yes"), limiter=limiter)
    assert limiter.current == 2


def failing(message: str) -> Callable[[], Awaitable[str]]:
    return Script(*(passing(message) for _ in range(9)))


async def test_the_breaker_counts_calls_and_not_tries() -> None:
    breaker = Breaker(threshold=2)
    for expected in (False, True):
        with pytest.raises(TargetFault, match="down"):
            await retrying(failing("down"), tries=4, breaker=breaker)
        assert breaker.is_open is expected


async def test_no_call_is_made_while_the_breaker_is_open_and_it_stays_open() -> None:
    breaker, call = Breaker(threshold=1), Script("yes")
    breaker.record_failure(passing("down"))
    for _ in range(2):
        with pytest.raises(TargetFault, match=r"down .*not called"):
            await retrying(call, breaker=breaker)
    assert call.times == []


async def test_calls_that_queue_for_a_slot_see_that_the_breaker_opened() -> None:
    limiter, breaker = Limiter(1), Breaker(threshold=1)
    calls = [Script(TargetFault("down", kind="connection")) for _ in range(3)]
    await asyncio.gather(*(retrying(call, limiter=limiter, breaker=breaker) for call in calls), return_exceptions=True)
    assert [len(call.times) for call in calls] == [1, 0, 0]


async def test_a_success_resets_the_breaker() -> None:
    breaker = Breaker(threshold=2)
    breaker.record_failure(passing("down"))
    await retrying(Script("yes"), breaker=breaker)
    breaker.record_failure(passing("down"))
    assert not breaker.is_open


async def test_a_cancelled_call_gives_its_slot_back() -> None:
    limiter = Limiter(1)

    async def forever() -> None:
        await asyncio.sleep(1e6)

    task = asyncio.create_task(retrying(forever, limiter=limiter))
    await asyncio.sleep(1)
    assert limiter.in_flight == 1
    task.cancel()
    await asyncio.wait([task])
    assert limiter.in_flight == 0
