"""Amounts as people write them on a command line: times, sizes and shares."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from vivavoce.errors import UsageError

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z%]*)")
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARES = {"": 1, "%": 0.01}


def seconds(option: str, text: str) -> float:
    """Return a time in seconds, such as 90, 60s, 5m, 1h or 2d.

    Raises:
        UsageError: it is none.
    """
    return _amount(option, text, _SECONDS, "a time such as 60s, 5m or 1h")


def size(option: str, text: str) -> int:
    """Return a size in bytes, such as 500MB or 2GB.

    Raises:
        UsageError: it is none.
    """
    return int(_amount(option, text, _BYTES, "a size such as 500MB or 2GB"))


def share(option: str, text: str) -> float:
    """Return a share from 0 to 1, such as 10% or 0.1.

    Raises:
        UsageError: it is none.
    """
    found = _amount(option, text, _SHARES, "a share such as 10% or 0.1")
    if found > 1:
        raise UsageError(f"{option} is a share such as 10% or 0.1, got '{text}', which is more than everything")
    return found


def _amount(option: str, text: str, units: Mapping[str, float], what: str) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units or not math.isfinite(float(found[1])):
        raise UsageError(f"{option} is {what}, got '{text}'")
    return float(found[1]) * units[found[2]]
