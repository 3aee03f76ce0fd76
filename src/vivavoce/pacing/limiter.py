"""`Limiter`: how many calls may run at once, shrinking when the other side asks and growing back when it keeps up."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from types import TracebackType
from typing import Self

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
