"""`retrying`: ask again after a failure that may pass, without holding a slot while waiting."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar

from vivavoce.errors import Fault, RateLimited
from vivavoce.pacing.breaker import Breaker
from vivavoce.pacing.limiter import Limiter

T = TypeVar("T")

FIRST_WAIT = 0.5
"""Seconds, at most, before the second try; each further wait may be twice as long."""

ASKS_PER_TRY = 5
"""How often a call may be asked to slow down, for each of its tries; a call that is tried once never waits."""

_UNLIMITED = nullcontext()


async def retrying(
    call: Callable[[], Awaitable[T]],
    *,
    tries: int = 4,
    max_wait: float = 60.0,
    limiter: Limiter | None = None,
    breaker: Breaker | None = None,
    draw: Callable[[], float] = random.random,
) -> T:
    """Return what `call` returns, asking up to `tries` times and waiting `max_wait` seconds in all.

    Only a `Fault` that is `retryable` is tried again; being asked to slow down is not a failed try, but is bounded
    as well (`ASKS_PER_TRY`). Each try holds a slot of `limiter`; the waits between do not.
    A wait is exactly the `retry_after` of a rate limit where it says one, and otherwise `draw()` (a number from 0 to 1)
    times a bound that doubles. A wait that would exceed `max_wait` is not begun. `breaker` gets the outcome once.

    Source: M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog (2015), "full jitter".

    Raises:
        Fault: the failure of the last try.
    """
    attempt, failures, waited = 0, 0, 0.0
    while True:
        attempt += 1
        try:
            result = await _attempt(call, limiter, breaker, max_wait)
        except Fault as fault:
            failures += not isinstance(fault, RateLimited)
            wait = _wait(fault, attempt, draw)
            patience = tries * ASKS_PER_TRY if tries > 1 else 1
            if not fault.retryable or failures >= tries or attempt >= patience or waited + wait > max_wait:
                if breaker is not None:
                    breaker.failed(fault)
                raise
        else:
            if breaker is not None:
                breaker.succeeded()
            return result
        await asyncio.sleep(wait)
        waited += wait


async def _attempt(
    call: Callable[[], Awaitable[T]], limiter: Limiter | None, breaker: Breaker | None, max_wait: float
) -> T:
    async with limiter or _UNLIMITED:
        if breaker is not None:
            breaker.check()
        try:
            result = await call()
        except RateLimited as limited:
            if limiter is not None:
                limiter.slow_down(None if limited.retry_after is None else min(limited.retry_after, max_wait))
            raise
        if limiter is not None:
            limiter.succeeded()
        return result


def _wait(fault: Fault, attempt: int, draw: Callable[[], float]) -> float:
    if isinstance(fault, RateLimited) and fault.retry_after is not None:
        return max(0.0, fault.retry_after)
    return draw() * FIRST_WAIT * 2 ** (attempt - 1)
