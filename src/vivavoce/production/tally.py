"""What was counted in each hour, kept with what was counted, so that a crash loses and repeats nothing."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict

HOUR = 3600
KEPT = 48 * HOUR
"""Seconds for which an hour is kept; the store has it by then."""

_ADD = """
INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT (hour, what) DO UPDATE SET number = number + excluded.number
"""


def keep_tally(database: sqlite3.Connection, counts: Counter[str], now: float) -> None:
    """Add what a transaction counted to its hour."""
    hour = hour_of(now)
    database.executemany(_ADD, ((hour, what, number) for what, number in counts.items() if number))


def tallies(database: sqlite3.Connection, since: int) -> dict[int, dict[str, int]]:
    """Return what was counted in each hour from `since` on, and forget what is too old."""
    database.execute("DELETE FROM tally WHERE hour < ?", (since - KEPT,))
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for hour, what, number in database.execute("SELECT hour, what, number FROM tally WHERE hour >= ?", (since,)):
        found[hour][what] = number
    return dict(found)


def hour_of(now: float) -> int:
    """Return the beginning of the hour of a time, both in seconds since 1970."""
    return int(now // HOUR) * HOUR
