from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.pacing.limits import RateLimit


def now() -> float:
    return asyncio.get_running_loop().time()


async def times(rate: RateLimit, *estimates: float) -> list[float]:
    """Return when each of some calls, made at once, is let through."""

    async def use_estimate(estimate: float) -> float:
        await rate.acquire(estimate)
        return now()

    return await asyncio.gather(*(use_estimate(estimate) for estimate in estimates))


async def test_without_limits_nobody_waits() -> None:
    assert await times(RateLimit(), *[1e9] * 5) == [0] * 5


async def test_requests_are_spread_over_the_minute() -> None:
    assert await times(RateLimit(requests_per_minute=6), 0, 0, 0, 0) == pytest.approx([0, 10, 20, 30])


async def test_a_seconds_worth_may_go_at_once() -> None:
    let_through = await times(RateLimit(requests_per_minute=120), *[0] * 5)
    assert let_through == pytest.approx([0, 0, 0.5, 1.0, 1.5])


async def test_time_without_calls_is_not_saved_up() -> None:
    rate = RateLimit(requests_per_minute=60)
    await asyncio.sleep(600)
    assert await times(rate, 0, 0, 0) == pytest.approx([600, 601, 602])


async def test_tokens_count_too_and_a_large_call_makes_the_next_ones_wait() -> None:
    rate = RateLimit(requests_per_minute=6000, tokens_per_minute=600)
    assert await times(rate, 100, 10, 10) == pytest.approx([0, 10, 11])


async def test_tokens_that_were_not_used_let_the_next_call_through() -> None:
    rate = RateLimit(tokens_per_minute=60)
    await rate.acquire(100)
    waiting = asyncio.create_task(times(rate, 1, 1))
    await asyncio.sleep(5)
    rate.settle(100, 10)
    assert await waiting == pytest.approx([10, 11])


async def test_tokens_used_beyond_the_estimate_hold_the_next_call_back() -> None:
    rate = RateLimit(tokens_per_minute=60)
    await rate.acquire(1)
    rate.settle(1, 31)
    assert await times(rate, 1) == pytest.approx([31])


async def test_a_small_call_does_not_overtake_a_large_one() -> None:
    rate = RateLimit(tokens_per_minute=600)
    assert await times(rate, 30, 10, 1) == pytest.approx([0, 3, 3.1])


@pytest.mark.parametrize("after", [0, 5])
async def test_a_call_that_gives_up_leaves_its_place_to_the_next(after: float) -> None:
    rate = RateLimit(tokens_per_minute=60)
    await rate.acquire(11)
    first, second = (asyncio.create_task(times(rate, tokens)) for tokens in (40, 1))
    await asyncio.sleep(after)
    first.cancel()
    await asyncio.wait([first])
    assert await second == pytest.approx([11])


async def test_a_call_cancelled_in_the_moment_it_is_let_through_gives_its_tokens_back() -> None:
    rate = RateLimit(requests_per_minute=60, tokens_per_minute=60)
    await rate.acquire(5)
    first, second = (asyncio.create_task(times(rate, 1)) for _ in range(2))
    asyncio.get_running_loop().call_at(5.0, first.cancel)
    await asyncio.wait([first])
    assert (await second)[0] <= 6


@given(st.floats(1, 600), st.floats(60, 6000), st.lists(st.tuples(st.floats(0, 90), st.floats(0, 300)), max_size=30))
async def test_no_minute_sees_more_than_its_limit_and_a_seconds_worth(
    requests: float, tokens: float, calls: list[tuple[float, float]]
) -> None:
    spans: list[tuple[float, float]] = []

    async def use_later(at: float, estimate: float) -> None:
        await asyncio.sleep(at)
        await rate.acquire(estimate)
        spans.append((now(), estimate))

    rate = RateLimit(requests, tokens)
    await asyncio.gather(*(use_later(at, estimate) for at, estimate in calls))
    assert len(spans) == len(calls)
    for start, _ in spans:
        minute = [estimate for at, estimate in spans if start <= at < start + 60]
        assert len(minute) <= requests + max(1, requests / 60) + 1e-3
        assert sum(minute) - max(minute) <= tokens + max(1, tokens / 60) + 1e-3


@pytest.mark.parametrize("limits", [(0, None), (None, -1), (float("nan"), None)])
def test_a_limit_that_lets_nothing_through_is_refused(limits: tuple[float | None, float | None]) -> None:
    with pytest.raises(ValueError, match="per minute must be above 0"):
        RateLimit(*limits)
