"""Limits on calls: how many run at once and in a minute, when they are tried again, and what they may cost in all.

How many files and connections a process may have open limits how many conversations run at once.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import random
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from vivavoce.errors import BudgetExhausted, Fault, RateLimited, UsageError

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
        raise ValueError(f"{what} per minute must be above 0, got {per_minute}")
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
            raise ValueError(f"threshold must be at least 1, got {threshold}")
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
        again = self._fault.restate(message, retryable=False)
        again.usage = None
        raise again from self._fault.__cause__

    def record_failure(self, fault: Fault) -> None:
        """Take note of a call that failed permanently; retries of one call are one call."""
        if self.is_open or not _meets_everybody(fault):
            return
        same = self._fault is not None and _identity(fault) == _identity(self._fault)
        self._count = self._count + 1 if same else 1
        self._fault = fault
        if self.is_open:
            self._next_look = asyncio.get_running_loop().time() + self._rest

    def record_success(self) -> None:
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
            raise ValueError(f"limit must be at least 1, got {limit}")
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

    def __aenter__(self) -> Coroutine[Any, Any, None]:
        return self.acquire()

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

    def record_success(self) -> None:
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
                    limiter.record_success()
        except Fault as fault:
            failures += not isinstance(fault, RateLimited)
            wait = _wait(fault, attempt, draw)
            patience = tries * ASKS_PER_TRY if tries > 1 else 1
            if not fault.retryable or failures >= tries or attempt >= patience or waited + wait > max_wait:
                if breaker is not None:
                    breaker.record_failure(fault)
                raise
        else:
            if breaker is not None:
                breaker.record_success()
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
    async def hold(self, number: int) -> AsyncGenerator[None]:
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


_ROUNDING = 1e-9
"""Sums of prices may exceed the limit by this much before it counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Room for one call; `cost` is what it may cost at most, None where the price is unknown."""

    cost: float | None


@dataclass(slots=True)
class _Aside:
    remaining: int


_ASIDE: ContextVar[_Aside | None] = ContextVar("calls set aside", default=None)


class Budget:
    """Room for calls and cost: `reserve` before each call, `settle` after it; None means no limit.

    Costs are in US dollars. What is reserved counts as spent until it is settled.

    Raises:
        UsageError: the limit is below 0, or no number.
    """

    def __init__(self, max_calls: int | None = None, max_cost: float | None = None) -> None:
        if max_cost is not None and not max_cost >= 0:
            raise UsageError(f"max_cost must be 0 or more US dollars, got {max_cost:g}")
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._calls = self._aside = 0
        self._settled = 0.0
        self._reserved = 0.0
        self._open: set[Reservation] = set()
        self._exhausted = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def limits_calls(self) -> bool:
        """Whether calls are counted against a limit."""
        return self._max_calls is not None

    @property
    def limits_cost(self) -> bool:
        """Whether a call must say what it may cost."""
        return self._max_cost is not None

    @property
    def calls(self) -> int:
        """How many calls were allowed."""
        return self._calls

    @property
    def cost(self) -> float:
        """What the calls cost, as far as it is known; open reservations count in full."""
        return self._settled + self._reserved

    @property
    def exhausted(self) -> bool:
        """Whether a call was refused: something that was asked for is left undone."""
        return self._exhausted

    async def admit(self, cost_estimate: float | None = None) -> Reservation:
        """Make room as `reserve` does, but wait while calls in flight hold it that may turn out cheaper.

        Raises:
            BudgetExhausted: the call might overshoot a limit, whatever the others cost.
            UsageError: the cost is limited and the price unknown.
        """
        while cost_estimate is not None and self._may_fit_later(cost_estimate):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return self.reserve(cost_estimate)

    def reserve(self, cost_estimate: float | None = None) -> Reservation:
        """Make room for one call that costs at most `cost_estimate`, None where its price is unknown.

        Raises:
            BudgetExhausted: the call might overshoot a limit.
            UsageError: the cost is limited and the price unknown.
        """
        aside = _ASIDE.get()
        if aside is not None and aside.remaining:
            aside.remaining -= 1
            self._aside -= 1
        if self._max_calls is not None:
            self._check_calls(1)
        if self._max_cost is not None:
            self._check_cost(cost_estimate, self._max_cost)
        reservation = Reservation(cost_estimate)
        self._open.add(reservation)
        self._calls += 1
        self._reserved += cost_estimate or 0.0
        return reservation

    def settle(self, reservation: Reservation, cost: float | None) -> None:
        """Replace a reservation by what the call cost; the estimate stands where that is None or no amount of money."""
        if reservation not in self._open:
            raise ValueError("this reservation is not open: it was settled before, or belongs to another budget")
        self._open.remove(reservation)
        estimate = reservation.cost or 0.0
        self._settled += cost if cost is not None and 0 <= cost < math.inf else estimate
        self._reserved = self._reserved - estimate if self._open else 0.0
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def set_aside(self, calls: int) -> AbstractContextManager[None]:
        """Keep calls for what is worth nothing half done: those reserved inside, by this task, come out of them.

        Raises:
            BudgetExhausted: when it is entered, fewer calls are left.
        """
        return self._setting_aside(calls) if self.limits_calls else _UNLIMITED

    @contextmanager
    def _setting_aside(self, calls: int) -> Generator[None]:
        self._check_calls(calls)
        self._aside += calls
        aside = _Aside(calls)
        token = _ASIDE.set(aside)
        try:
            yield
        finally:
            _ASIDE.reset(token)
            self._aside -= aside.remaining

    def _may_fit_later(self, estimate: float) -> bool:
        if self._max_cost is None or self._reserved <= 0:
            return False
        room = self._max_cost + _ROUNDING - estimate
        return self._settled <= room < self.cost

    def _check_calls(self, calls: int) -> None:
        if self._max_calls is not None and self._calls + self._aside + calls > self._max_calls:
            self._refuse(f"the limit of {self._max_calls} calls is reached")

    def _check_cost(self, estimate: float | None, limit: float) -> None:
        if estimate is None:
            raise UsageError(
                "the price of the model is unknown and its cost cannot be bounded; "
                "state its price, or limit the calls instead of the cost"
            )
        if self.cost + estimate > limit + _ROUNDING:
            self._refuse(f"the next call may cost ${estimate:.4g}, and ${self.cost:.4g} of ${limit:.4g} is spent")

    def _refuse(self, why: str) -> None:
        self._exhausted = True
        raise BudgetExhausted(why)


WANTED_HANDLES = 4_096
"""Handles that a process asks for when it starts, where the system lets it have them."""

HANDLES_OF_PROCESS = 24
"""Handles that a process needs for itself: streams, the store, the event loop, and files that it reads for a moment."""

HANDLES_PER_CONVERSATION = 2
"""Handles of a conversation at a time: one connection to a target or judge, and one to the store."""


def handle_limit() -> int | None:
    """Return how many files and connections this process may have open, None where nothing limits them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_handle_limit() -> None:
    """Raise the limit of this process to what it wants, as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = WANTED_HANDLES if hard == resource.RLIM_INFINITY else min(WANTED_HANDLES, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def affordable(concurrency: int) -> int:
    """Return how many conversations, of those wanted, this process has handles for at a time; at least 1."""
    limit = handle_limit()
    if limit is None:
        return concurrency
    return max(1, min(concurrency, (limit - HANDLES_OF_PROCESS) // HANDLES_PER_CONVERSATION))


def has_free_handle() -> bool:
    """Return whether another file can be opened now."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return not lacks_handle(error)
    return True


def lacks_handle(error: OSError) -> bool:
    """Return whether an error means that no other file can be opened."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def check_handle_limit() -> None:
    """Check that this process may open what it needs for one conversation at a time.

    Raises:
        UsageError: it may not.
    """
    limit, needed = handle_limit(), HANDLES_OF_PROCESS + HANDLES_PER_CONVERSATION
    if limit is not None and limit < needed:
        raise UsageError(f"only {limit} files may be open at a time, and viva needs {needed}; raise it: ulimit -n 1024")


def too_few_handles() -> str:
    """Return what to do where no other file can be opened."""
    return f"too many files are open (limit {handle_limit()}); raise it with ulimit -n, or lower --max-concurrent"


def few_handles_note(concurrency: int) -> str | None:
    """Return a note if this process has too few handles for these conversations at a time, else None."""
    fewer = affordable(concurrency)
    if fewer == concurrency:
        return None
    times = "1 conversation runs" if fewer == 1 else f"{fewer} conversations run"
    return f"only {handle_limit()} files may be open at a time, so at most {times} at a time; see ulimit -n"
