"""Points of time as other formats write them: ISO texts, and seconds to nanoseconds since 1970 as numbers or texts."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From where on a number counts nanoseconds, microseconds, milliseconds, and how many of them a second has."""
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC).timestamp()
"""Before it, a time is a clock that was never set."""


def seconds(value: Any) -> float | None:
    """Return a point of time as seconds since 1970, None for what is none, or is 0 and so was never set."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = float(text) if text[:1].isdigit() and "-" not in text and ":" not in text else _moment(text)
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number) or number <= 0:
        return None
    for least, per_second in _UNITS:
        if number >= least:
            return number / per_second
    return number


@lru_cache(maxsize=1024)  # a conversation names each of its times more than once
def iso(time: float | None) -> str | None:
    """Return seconds since 1970 as an ISO text in UTC, None if that is no date."""
    if time is None or time < _EARLIEST:
        return None
    try:
        return datetime.fromtimestamp(time, UTC).replace(tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError, OSError):
        return None


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
