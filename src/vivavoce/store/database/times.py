"""What a stored row has to be, so that it can be read: times that a calendar knows."""

from __future__ import annotations

from vivavoce.errors import StoreError

_LAST_TIME = 253_402_214_400.0
"""The last day of the year 9999, in seconds since the epoch."""


class UnreadableRow(StoreError):
    """A row of the store has values that vivavoce does not write."""


def is_time(value: object) -> bool:
    """Return whether a value is seconds since the epoch that a calendar can show."""
    return isinstance(value, int | float) and 0 <= value < _LAST_TIME


def check_times(*values: object) -> None:
    """Check that values are times, or None.

    Raises:
        ValueError: one is not.
    """
    for value in values:
        if value is not None and not is_time(value):
            raise ValueError(f"{value!r} is not a time")
