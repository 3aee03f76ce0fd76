"""Cursors: the sort values of the last row of a page, as text for an address."""

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
    """Return the cursor after a row."""
    return base64.urlsafe_b64encode(json.dumps(list(values)).encode()).decode().rstrip("=")


def beside(ends: Sequence[str], *, more: bool, after: str | None, before: str | None) -> tuple[str | None, str | None]:
    """Return the cursors of the next and of the previous page of one; `ends` are those of its first and last row.

    `more` says that the list goes on in the direction in which the page was read: back where it stood `before` a place.
    """
    if not ends:
        return None, None
    back = before is not None
    return ends[-1] if more or back else None, ends[0] if (more if back else after is not None) else None


def read_place(place: str, *kinds: type) -> tuple[Any, ...]:
    """Return the sort values of a cursor, one of each kind; a whole number counts as a number.

    Raises:
        NotFound: the text is not a cursor, or is the cursor of another order.
    """
    try:
        parsed = json.loads(base64.urlsafe_b64decode(place.encode() + b"=" * (-len(place) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        parsed = None
    values = cast("list[Any]", parsed) if isinstance(parsed, list) else []
    if len(values) != len(kinds) or not all(map(_fits, values, kinds)):
        raise no_cursor(place)
    return tuple(values)


def no_cursor(place: str) -> NotFound:
    """Return the error for an invalid cursor."""
    return NotFound("cursor", place, hint="; start the list again without it")


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    if isinstance(value, str):
        return kind is str
    if isinstance(value, int):
        return kind is not str and -MOST <= value < MOST
    return kind is float and math.isfinite(value)
