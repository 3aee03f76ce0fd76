"""Rate limits: how many requests a token or an address may send.

They are counted in memory, for a limited number of clients, and exchanged with the other servers of a store.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from threading import Lock

from vivavoce.store.access import Rate

MOST_ASKERS = 10_000
"""Clients that are remembered; beyond that, the least recent one is forgotten."""


class RateLimiter:
    """`burst` at once and `per_second` in the long run, for each client: a token bucket; safe for use from any thread.

    It counts on its own; `exchange` tells others what was taken here, and learns what all together have left.
    """

    def __init__(
        self,
        per_second: float,
        burst: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_ASKERS,
    ) -> None:
        self.rate = Rate(per_second, burst)
        self._clock, self._most = clock, most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._taken: dict[str, int] = {}
        self._lock = Lock()

    def take(self, who: str) -> float:
        """Take one and return 0; if none is left, return the seconds until there is one."""
        with self._lock:
            now = self._clock()
            left = self._now_left(who, now)
            if left < 1:
                return (1 - left) / self.rate.per_second
            self._set(who, left - 1, now)
            self._taken[who] = self._taken.get(who, 0) + 1
            return 0.0

    def wait(self, who: str) -> float:
        """Return the seconds until one is available, 0 if one is; nothing is taken."""
        with self._lock:
            return max(0.0, 1 - self._now_left(who, self._clock())) / self.rate.per_second

    def exchange(self, spend: Callable[[dict[str, int]], dict[str, float]]) -> None:
        """Have `spend` take what was taken here from what all have left, and continue with what it returns.

        Where it raises, the same is tried at the next time.
        """
        with self._lock:
            taken, self._taken = self._taken, {}
        try:
            left = spend(taken) if taken else {}
        except BaseException:
            with self._lock:
                for who, number in taken.items():
                    self._taken[who] = self._taken.get(who, 0) + number
            raise
        with self._lock:
            for who, number in left.items():
                self._set(who, number - self._taken.get(who, 0), self._clock())

    def _set(self, who: str, left: float, now: float) -> None:
        self._left[who] = (left, now)
        self._left.move_to_end(who)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def _now_left(self, who: str, now: float) -> float:
        left, then = self._left.get(who, (self.rate.burst, now))
        return min(self.rate.burst, left + (now - then) * self.rate.per_second)


@lru_cache(maxsize=MOST_ASKERS)
def asker_at(address: str) -> str:
    """Return the client that an address belongs to: for IPv6 its 64-bit network, which one machine may own."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if found.version == 6 and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return address if found.version == 4 else str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))
