"""Spans as they arrive: each is kept once, in the bundle of its trace and its conversation."""

from __future__ import annotations

import sqlite3
from collections import Counter
from hashlib import blake2b

from vivavoce.production.intake import Arrival, Taken

_TRACE, _CONVERSATION = 0, 1
_NAMELESS = b"\xff"
"""How the identity begins of what has no id of its own: no text does, as bytes."""
_INSERT = """
INSERT INTO span (bundle, trace, identity, parent, conversation, time, value) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_GROWN = """
UPDATE bundle SET last = max(last, ?), spans = spans + 1, bytes = bytes + ?, own = max(own, ?), open = 1,
    first = CASE WHEN open THEN first ELSE ? END WHERE number = ?
"""
_KNOWN = """
SELECT span.number, open, value FROM span LEFT JOIN bundle ON bundle.number = span.bundle
    WHERE trace = ? AND identity = ?
"""
_MERGED = """
UPDATE bundle SET (first, last, spans, bytes, own, open) = (
    SELECT min(CASE WHEN open THEN first ELSE ?3 END), max(last), sum(spans), sum(bytes), max(own), max(open)
        FROM bundle WHERE number IN (?1, ?2)
) WHERE number = ?1
"""


def add(database: sqlite3.Connection, taken: Taken, now: float, counts: Counter[str]) -> None:
    """Keep what a request or a piece of a file holds, and how far the file is read."""
    names: dict[tuple[int, bytes], int] = {}
    for arrival in taken.arrivals:
        _add(database, arrival, now, counts, names)
    counts["refused"] += taken.rejected
    if taken.position is not None:
        database.execute("INSERT OR REPLACE INTO file VALUES (?, ?)", taken.position)


def _add(
    database: sqlite3.Connection,
    arrival: Arrival,
    now: float,
    counts: Counter[str],
    names: dict[tuple[int, bytes], int],
) -> None:
    member, value = arrival.member, arrival.value
    trace = key_of(member.trace)
    identity = (
        _NAMELESS + blake2b(value, digest_size=16).digest() if member.identity is None else key_of(member.identity)
    )
    known = database.execute(_KNOWN, (trace, identity)).fetchone()
    if known is not None:
        counts["repeated"] += 1
        number, is_open, before = known
        if is_open and before != value:
            database.execute("UPDATE span SET value = ? WHERE number = ?", (value, number))
        return
    conversation = None if member.conversation is None else key_of(member.conversation)
    bundle = _bundle(database, trace, conversation, now, names)
    parent = None if member.parent is None else key_of(member.parent)
    database.execute(_INSERT, (bundle, trace, identity, parent, conversation, member.time, value))
    database.execute(_GROWN, (now, len(value), arrival.is_own, now, bundle))
    counts["spans"] += 1


def _bundle(
    database: sqlite3.Connection,
    trace: bytes,
    conversation: bytes | None,
    now: float,
    names: dict[tuple[int, bytes], int],
) -> int:
    """Return the bundle of a trace and a conversation; two that turn out to be one are made one."""
    wanted = [(_TRACE, trace), *([] if conversation is None else [(_CONVERSATION, conversation)])]
    found = {name: number for name in wanted if (number := _named(database, name, names)) is not None}
    numbers = sorted(set(found.values()))
    if not numbers:
        made = "INSERT INTO bundle (first, last, spans, bytes, own, open) VALUES (?, ?, 0, 0, 0, 1)"
        numbers = [int(database.execute(made, (now, now)).lastrowid or 0)]
    elif len(numbers) == 2:
        _merge(database, numbers[0], numbers[1], now)
        names.clear()
    for name in wanted:
        names[name] = numbers[0]
        if name not in found:
            database.execute("INSERT INTO name VALUES (?, ?, ?)", (*name, numbers[0]))
    return numbers[0]


def _named(database: sqlite3.Connection, name: tuple[int, bytes], names: dict[tuple[int, bytes], int]) -> int | None:
    if name in names:
        return names[name]
    row = database.execute("SELECT bundle FROM name WHERE kind = ? AND name = ?", name).fetchone()
    return None if row is None else row[0]


def _merge(database: sqlite3.Connection, kept: int, other: int, now: float) -> None:
    database.execute(_MERGED, (kept, other, now))
    database.execute("UPDATE span SET bundle = ? WHERE bundle = ?", (kept, other))
    database.execute("UPDATE name SET bundle = ? WHERE bundle = ?", (kept, other))
    database.execute("DELETE FROM bundle WHERE number = ?", (other,))


def key_of(text: str) -> bytes:
    """Return a text as bytes: one may have halves of characters, which the database takes for no text."""
    return text.encode("utf-8", "surrogatepass")


def text_of(key: bytes | None) -> str | None:
    """Return the text of a key, None if it has none."""
    return None if key is None or key.startswith(_NAMELESS) else key.decode("utf-8", "surrogatepass")
