"""Ids of attempts: made without asking the database, in the order of time, different in every process.

63 bits: milliseconds since 2020 (41, enough until 2089), a random number of the maker (16), a counter (6).
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator

_START_MS = 1_577_836_800_000
_COUNTER_BITS = 6
_MAKER_BITS = 16


def attempt_ids() -> Iterator[int]:
    """Yield ids, each greater than the one before, even when the clock is set back."""
    maker = secrets.randbits(_MAKER_BITS) << _COUNTER_BITS
    tick = 0
    while True:
        now = time.time_ns() // 1_000_000 - _START_MS
        tick = max(now << _COUNTER_BITS, tick + 1)  # a full counter runs on into the next millisecond
        milliseconds, counter = divmod(tick, 1 << _COUNTER_BITS)
        yield milliseconds << (_MAKER_BITS + _COUNTER_BITS) | maker | counter


def first_id_at(seconds: float) -> int:
    """Return a number that every id made from a time on reaches, and none made before it; in seconds since 1970."""
    return max(0, math.ceil(seconds * 1000) - _START_MS) << (_MAKER_BITS + _COUNTER_BITS)
