"""`Limiter`: how many calls may run at once, shrinking when the other side asks and growing back when it copes."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

_DECREASE = 0.8
"""What is left of the limit after a rate limit."""


class Limiter:
    """Slots for calls to one system, given in the order they were asked for; use it with `async with`.

    The number of slots adapts between 1 and `limit`: `slow_down` shrinks it by a fifth, at most once for all the calls
    that are in flight at that moment, and `succeeded` adds one slot after as many successes as there are slots. Call
    both while holding the slot. A limiter serves one event loop, whose time it uses, in seconds.

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
        self._pause: asyncio.TimerHandle | None = None

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
        if self._is_free():
            self._take()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            given = not turn.cancel() and not turn.cancelled()
            if given:
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back."""
        if not self._in_flight:
            raise RuntimeError("a slot was released that nobody held")
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
        self._successes += 1
        if self._successes >= self._current:
            self._successes = 0
            self._current += 1
            self._admit()

    def _is_free(self) -> bool:
        return self._in_flight < self._current and self._pause is None

    def _take(self) -> None:
        self._in_flight += 1
        if self._in_flight > self._peak:
            self._peak = self._in_flight

    def _admit(self) -> None:
        """Hand free slots to those who wait; nobody waits while a slot is free, so nobody can be overtaken."""
        while self._waiting and self._is_free():
            turn = self._waiting.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)

    def _pause_for(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._pause is not None:
            if self._pause.when() >= until:
                return
            self._pause.cancel()
        self._pause = loop.call_at(until, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._admit()
