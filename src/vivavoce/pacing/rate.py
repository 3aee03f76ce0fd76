"""`RateLimit`: how many requests and tokens a provider takes in a minute."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

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
        """Wait until a request of about so many tokens may be sent."""
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
