"""Limits on calls: how many run at once, how many a minute takes, and when failing calls are tried again or stopped."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from vivavoce.errors import Fault, RateLimited

_NEARLY = 1e-6
"""What may be missing from a bucket that a timer was set to find full."""


class RateLimit:
    """Requests and tokens per minute, None for no limit; models of one provider share one.

    `acquire` lets calls through in the order they came, `settle` corrects what was expected by what was used. One
    second's worth may go at once, so a minute sees at most that much more than its limit; a call that is larger than
    a second's worth goes when nothing is owed, and those behind it wait for what it owes. A limit serves one event
    loop, whose time it uses, in seconds.

    Source: the token bucket, as in J. Turner, New Directions in Communications (1986).
    """

    def __init__(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        self._requests = _bucket(requests_per_minute, "requests")
        self._tokens = _bucket(tokens_per_minute, "tokens")
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, tokens_estimate: float = 0.0) -> None:
        """Wait until a request of about this many tokens may be sent."""
        if not self._waiting and not self._wait(tokens_estimate):
            self._take(tokens_estimate)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, tokens_estimate))
        if self._timer is None:
            self._admit()
        try:
            await turn
        except BaseException:
            if not turn.cancel() and not turn.cancelled():
                self._requests.give(1.0)
                self._tokens.give(tokens_estimate)
            self._admit()
            raise

    def settle(self, estimate: float, used: float) -> None:
        """Take note of how many tokens a request used that was expected to use `estimate`."""
        self._tokens.give(estimate - used)
        if self._waiting:
            self._admit()

    def _wait(self, tokens: float) -> float:
        """Return the seconds until a request may be sent."""
        now = asyncio.get_running_loop().time()
        return max(self._requests.wait(1.0, now), self._tokens.wait(tokens, now))

    def _take(self, tokens: float) -> None:
        self._requests.give(-1.0)
        self._tokens.give(-tokens)

    def _admit(self) -> None:
        """Let through who may go, and set the timer for the first who may not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            turn, tokens = self._waiting[0]
            if not turn.done():
                if wait := self._wait(tokens):
                    self._timer = asyncio.get_running_loop().call_later(wait, self._admit)
                    return
                self._take(tokens)
                turn.set_result(None)
            self._waiting.popleft()


@dataclass(slots=True)
class _Bucket:
    """Fills with time up to one second's worth; what is given back may fill it further, what is taken may empty it."""

    per_second: float
    level: float
    filled_at: float | None = None

    @property
    def size(self) -> float:
        return max(1.0, self.per_second)

    def wait(self, amount: float, now: float) -> float:
        passed = 0.0 if self.filled_at is None else now - self.filled_at
        self.filled_at = now
        if self.level < self.size:
            self.level = min(self.size, self.level + passed * self.per_second)
        missing = min(amount, self.size) - self.level
        return missing / self.per_second if missing > _NEARLY else 0.0

    def give(self, amount: float) -> None:
        self.level += amount


class _Bottomless(_Bucket):
    """Where there is no limit."""

    def wait(self, amount: float, now: float) -> float:
        return 0.0


def _bucket(per_minute: float | None, what: str) -> _Bucket:
    if per_minute is None:
        return _Bottomless(0.0, 0.0)
    if not per_minute > 0:
        raise ValueError(f"a limit of {what} per minute is above 0, got {per_minute}")
    return _Bucket(per_minute / 60, max(1.0, per_minute / 60))


_REFUSES_EVERYBODY = frozenset((401, 403, 404))
"""Statuses of a wrong key, a missing right, and an address or a model that does not exist."""


class Breaker:
    """Opens after `threshold` calls in a row that failed identically; a success closes it.

    Only failures count that another call would meet as well: no connection, a wrong key, an unknown model. A rate
    limit, a slow answer, a refusal or an answer that cannot be read belongs to one call and changes nothing. While it
    is open no call need be made: the answer is known. Every `rest` seconds one call is let through to see whether that
    still holds. It serves one event loop, whose time it uses.
    """

    def __init__(self, threshold: int = 5, rest: float = 30.0) -> None:
        if threshold < 1:
            raise ValueError(f"a threshold is at least 1, got {threshold}")
        self._threshold = threshold
        self._rest = rest
        self._fault: Fault | None = None
        self._count = 0
        self._next_look = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused."""
        return self._count >= self._threshold

    def check(self) -> None:
        """Raise the known failure again if the breaker is open; its message says that no call was made."""
        if self._fault is None or not self.is_open:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._next_look:
            self._next_look = now + self._rest
            return
        message = f"{self._fault} (not called: the last {self._threshold} calls failed in this way)"
        again = self._fault.restated(message, retryable=False)
        again.usage = None
        raise again from self._fault.__cause__

    def failed(self, fault: Fault) -> None:
        """Take note of a call that failed permanently; retries of one call are one call."""
        if self.is_open or not _meets_everybody(fault):
            return
        same = self._fault is not None and _identity(fault) == _identity(self._fault)
        self._count = self._count + 1 if same else 1
        self._fault = fault
        if self.is_open:
            self._next_look = asyncio.get_running_loop().time() + self._rest

    def succeeded(self) -> None:
        """Take note of a call that succeeded."""
        self._fault = None
        self._count = 0


def _meets_everybody(fault: Fault) -> bool:
    return fault.kind == "connection" or fault.status in _REFUSES_EVERYBODY


def _identity(fault: Fault) -> tuple[str, str, str | None]:
    return fault.kind, str(fault), fault.evidence


_DECREASE = 0.8
"""What is left of the limit after a rate limit."""


class Limiter:
    """Slots for calls to one system, given in the order they were asked for; use it with `async with`.

    The number of slots adapts between 1 and `limit`: `slow_down` shrinks it by a fifth, at most once for all the calls
    that are in flight at that moment, and `succeeded` adds one slot after as many successes as there are slots. Call
    both while holding the slot. Threads may share a limiter, each with an event loop of its own, and a loop may end
    while others wait: each waiter is woken in its own loop. Times are those of the loops, in seconds.

    Source: additive increase, multiplicative decrease: D. Chiu and R. Jain, Analysis of the Increase and Decrease
    Algorithms for Congestion Avoidance in Computer Networks (1989).
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a limit is at least 1, got {limit}")
        self._ceiling = self._current = limit
        self._in_flight = self._peak = 0
        self._successes = 0
        self._stale = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until: float | None = None
        self._alarms: dict[asyncio.AbstractEventLoop, asyncio.TimerHandle] = {}
        self._lock = threading.RLock()

    @property
    def current(self) -> int:
        """How many calls may run at once now."""
        return self._current

    @property
    def ceiling(self) -> int:
        """How many calls may ever run at once."""
        return self._ceiling

    @property
    def in_flight(self) -> int:
        """How many slots are held."""
        return self._in_flight

    @property
    def peak(self) -> int:
        """The most slots that were ever held at once."""
        return self._peak

    async def acquire(self) -> None:
        """Wait for a slot; whoever gets one must `release` it."""
        with self._lock:
            if not self._waiting and self._is_free():
                self._take()
                return
            loop = asyncio.get_running_loop()
            turn = loop.create_future()
            self._waiting.append(turn)
            if self._paused_until is not None:
                self._set_alarm(loop, self._paused_until)
            self._admit()  # a pause may just have ended
        try:
            await turn
        except BaseException:
            slot_given = not turn.cancel() and not turn.cancelled()
            if slot_given:
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            if not self._in_flight:
                raise RuntimeError("a slot was released that was not held")
            self._in_flight -= 1
            if self._stale:
                self._stale -= 1
            if self._waiting:
                self._admit()

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def slow_down(self, retry_after: float | None = None) -> None:
        """Take note that the other side is overloaded; for `retry_after` seconds nobody starts."""
        with self._lock:
            self._successes = 0
            if not self._stale:
                self._current = max(1, int(self._current * _DECREASE))
                self._stale = self._in_flight
            if retry_after is not None and retry_after > 0:
                self._pause_for(retry_after)

    def succeeded(self) -> None:
        """Take note of a success; it counts only while every slot is in use, or the limit would grow untried."""
        if self._current == self._ceiling or self._in_flight < self._current:
            return
        with self._lock:
            self._successes += 1
            if self._successes >= self._current:
                self._successes = 0
                self._current += 1
                self._admit()

    def _is_free(self) -> bool:
        return self._in_flight < self._current and (self._paused_until is None or not self._is_paused())

    def _is_paused(self) -> bool:
        if self._paused_until is not None and asyncio.get_running_loop().time() >= self._paused_until:
            self._paused_until = None
        return self._paused_until is not None

    def _take(self) -> None:
        self._in_flight += 1
        if self._in_flight > self._peak:
            self._peak = self._in_flight

    def _admit(self) -> None:
        """Hand free slots to those who wait; nobody waits while a slot is free, so nobody can be overtaken."""
        while self._waiting and self._is_free():
            turn = self._waiting.popleft()
            if not turn.done() and not (loop := turn.get_loop()).is_closed():
                self._take()
                if loop is asyncio.get_running_loop():
                    turn.set_result(None)
                else:
                    loop.call_soon_threadsafe(self._hand_over, turn)

    def _hand_over(self, turn: asyncio.Future[None]) -> None:
        """Give a slot that was taken for somebody who waits in this loop, unless they were cancelled meanwhile."""
        if turn.done():
            self.release()
        else:
            turn.set_result(None)

    def _pause_for(self, seconds: float) -> None:
        here = asyncio.get_running_loop()
        until = self._paused_until = max(here.time() + seconds, self._paused_until or 0.0)
        self._set_alarm(here, until)
        for loop in {turn.get_loop() for turn in self._waiting} - {here}:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._set_alarm, loop, until)

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        """Set a timer of the running loop for the end of the pause; one that fires too early is set again."""
        if loop not in self._alarms:
            self._alarms[loop] = loop.call_at(until, self._resume)

    def _resume(self) -> None:
        here = asyncio.get_running_loop()
        with self._lock:
            for loop in [loop for loop in self._alarms if loop is here or loop.is_closed()]:
                del self._alarms[loop]
            if self._is_paused() and self._paused_until is not None:
                self._set_alarm(here, self._paused_until)
            else:
                self._admit()


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


def _wait(fault: Fault, attempt: int, draw: Callable[[], float]) -> float:
    if isinstance(fault, RateLimited) and fault.retry_after is not None:
        return max(0.0, fault.retry_after)
    return draw() * FIRST_WAIT * 2 ** (attempt - 1)


class Places:
    """So many places, given in the order they were asked for; whoever needs more waits, and later ones wait behind."""

    def __init__(self, number: int) -> None:
        self._number = self._free = number
        self._turn = asyncio.Lock()
        self._returned = asyncio.Event()

    @asynccontextmanager
    async def taken(self, number: int) -> AsyncGenerator[None]:
        """Wait for places, at most as many as there are, and hold them."""
        number = min(number, self._number)
        async with self._turn:
            while self._free < number:
                self._returned.clear()
                await self._returned.wait()
            self._free -= number
        try:
            yield
        finally:
            self._free += number
            self._returned.set()
