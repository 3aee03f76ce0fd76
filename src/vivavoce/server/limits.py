"""Rate limits: how many requests a token or an address may send; counted in memory, for a limited number of clients."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

MOST_ASKERS = 10_000
"""Clients that are remembered; beyond that, the least recent one is forgotten."""


class RateLimiter:
    """`burst` at once and `per_second` in the long run, for each client: a token bucket. For one event loop."""

    def __init__(
        self,
        per_second: float,
        burst: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_ASKERS,
    ) -> None:
        self._per_second, self._burst, self._clock, self._most = per_second, burst, clock, most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> float:
        """Take one and return 0; if none is left, return the seconds until there is one."""
        now = self._clock()
        left = self._now_left(who, now)
        if left < 1:
            return (1 - left) / self._per_second
        self._left[who] = (left - 1, now)
        self._left.move_to_end(who)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return 0.0

    def wait(self, who: str) -> float:
        """Return the seconds until one is available, 0 if one is; nothing is taken."""
        return max(0.0, 1 - self._now_left(who, self._clock())) / self._per_second

    def _now_left(self, who: str, now: float) -> float:
        left, then = self._left.get(who, (self._burst, now))
        return min(self._burst, left + (now - then) * self._per_second)


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
