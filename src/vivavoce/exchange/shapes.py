"""Values of records, which may have any type: what is of the type that is asked for, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, cast

Fields = dict[str, Any]

_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""Before it, a time is a clock that was never set."""


def fields_in(value: Any) -> Fields:
    """Return an object, or an empty one where there is none."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def items_in(value: Any) -> list[Any]:
    """Return a list, or an empty one where there is none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects_in(value: Any) -> list[Fields]:
    """Return the objects of a list; what is none is left out."""
    return [cast("Fields", item) for item in items_in(value) if isinstance(item, dict)]


def texts_in(value: Any) -> list[str]:
    """Return the texts of a list that say something; what is none is left out."""
    return [item for item in items_in(value) if isinstance(item, str) and item.strip()]


def text_in(value: Any) -> str | None:
    """Return a text that says something, or a number as one."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def number_in(value: Any) -> float | int | None:
    """Return a number; truth values, NaN and the infinite are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def time_in(value: Any) -> str | None:
    """Return a time as ISO text: it is one already, or seconds (or thousandths and smaller) since 1970.

    A time before 1980 is that of a clock that was not set, and none.
    """
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else _since_1970(value)
        if found is None or found.replace(tzinfo=found.tzinfo or UTC) < _EARLIEST:
            return None
        written = found.isoformat()
    except (ValueError, OverflowError, OSError):
        return None
    return value if isinstance(value, str) and value.removesuffix("Z") == written.removesuffix("+00:00") else written


def without(fields: Mapping[str, Any], keys: Collection[str]) -> Fields:
    """Return the other members of an object, as far as they have a value."""
    return {key: value for key, value in fields.items() if key not in keys and value is not None}


def filled(values: Mapping[str, Any]) -> Fields:
    """Return the members that hold something: a value, and no empty list or object."""
    return {key: value for key, value in values.items() if value is not None and value not in ({}, [])}


def _since_1970(value: Any) -> datetime | None:
    number = number_in(value)
    if number is None:
        return None
    while number > _IN_SECONDS:
        number /= 1000
    return datetime.fromtimestamp(number, UTC)


_IN_SECONDS = 20_000_000_000
"""A larger number counts thousandths of a second, or smaller parts."""
