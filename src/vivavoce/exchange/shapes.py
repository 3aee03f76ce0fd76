"""Values of records, which may have any type: what is of the type that is asked for, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from vivavoce.exchange.times import iso, seconds

Fields = dict[str, Any]


def no_items() -> list[Any]:
    """Return an empty list."""
    return []


def no_fields() -> Fields:
    """Return an empty object."""
    return {}


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


def first_in(fields: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the first of these members that has a value, which an empty text is not; None without any."""
    for key in keys:
        if (value := fields.get(key)) is not None and value != "":
            return value
    return None


def text_in(value: Any) -> str | None:
    """Return a text that says something, or a number as one."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def words_in(value: Any) -> str:
    """Return a value as text, the empty text where there is none."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def number_in(value: Any) -> float | int | None:
    """Return a number; truth values, NaN and the infinite are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def time_in(value: Any) -> str | None:
    """Return a time as ISO text: as it is written, if it is one already; None for a clock that was never set."""
    written = iso(seconds(value))
    if written is None or not isinstance(value, str):
        return written
    try:
        text = datetime.fromisoformat(value).isoformat()
    except ValueError:
        return written  # a number, as a text
    return value if value.removesuffix("Z") == text.removesuffix("+00:00") else text


def without(fields: Mapping[str, Any], keys: Collection[str]) -> Fields:
    """Return the other members of an object, as far as they have a value."""
    return {key: value for key, value in fields.items() if key not in keys and value is not None}


def filled(values: Mapping[str, Any]) -> Fields:
    """Return the members that hold something: a value, and no empty list or object."""
    return {key: value for key, value in values.items() if value is not None and value not in ({}, [])}
