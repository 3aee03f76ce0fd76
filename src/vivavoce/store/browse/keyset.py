"""Places between two pages: what the last row of one page is ordered by, as a text that an address can hold."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Sequence
from typing import Any, cast

from vivavoce.errors import NotFound

Key = str | int | float
MOST = 2**63


def encode_cursor(values: Sequence[Key]) -> str:
    """Return the place after a row."""
    return base64.urlsafe_b64encode(json.dumps(list(values)).encode()).decode().rstrip("=")


def read_place(place: str, *kinds: type) -> tuple[Any, ...]:
    """Return what a row is ordered by, one value of each kind; a whole number is a number, too.

    Raises:
        NotFound: the text is not a place, or that of another order.
    """
    try:
        read = json.loads(base64.urlsafe_b64decode(place.encode() + b"=" * (-len(place) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        read = None
    values = cast("list[Any]", read) if isinstance(read, list) else []
    if len(values) != len(kinds) or not all(map(_fits, values, kinds)):
        raise no_cursor(place)
    return tuple(values)


def no_cursor(place: str) -> NotFound:
    """Return what to raise for a place that is not one of a list."""
    return NotFound("cursor", place, hint="; begin the list again without it")


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    if isinstance(value, str):
        return kind is str
    if isinstance(value, int):
        return kind is not str and -MOST <= value < MOST
    return kind is float and math.isfinite(value)
