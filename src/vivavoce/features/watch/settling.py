"""Bundles that are complete become conversations: those that are silent long enough, and those that never end."""

from __future__ import annotations

import json
import marshal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.conversations.format import Loss, Member, Place, Row
from vivavoce.errors import UsageError
from vivavoce.features.watch.intake import span_pieces
from vivavoce.features.watch.spool import text_of

BATCH_SIZE = 50
"""Bundles that one step makes conversations of, so that what comes in meanwhile need not wait long."""
MOST_SPANS, MOST_BYTES = 10_000, 64 * 2**20
"""From here on a bundle is made conversations of although it is not silent; of each, no more is read."""
MAX_BEGUN = 2
"""Times that reading a bundle may begin without an end, before the bundle is set aside."""
READ_SECONDS = 120.0
"""Seconds after which reading a bundle is taken to have no end."""
RETENTION_SECONDS = 3600.0
"""Seconds for which the spans of a conversation are kept after the last of them, in case that it goes on."""

_FILE = Path("traces")
_ID_LENGTH = 200
_DUE = """
SELECT number, own, last > ?1, spans, coalesce(times, 0) FROM bundle LEFT JOIN begun ON begun.bundle = number
    WHERE open AND (last <= ?1 OR first <= ?2 OR spans >= ?3 OR bytes >= ?4) ORDER BY last LIMIT ?5
"""
_BEGIN = "INSERT INTO begun VALUES (?, 1) ON CONFLICT (bundle) DO UPDATE SET times = times + 1"
_GIVE_BACK = "UPDATE begun SET times = max(0, times - 1) WHERE bundle = ?"
_SPANS = """
SELECT trace, identity, parent, conversation, time, value FROM span WHERE bundle = ? ORDER BY number LIMIT ?
"""
_LAST = "SELECT number, version, digest, state FROM talk WHERE id = ? ORDER BY version DESC LIMIT 1"
_NEW = "INSERT INTO talk (id, version, sample, digest, row, state, settled) VALUES (?, ?, ?, ?, ?, 'waiting', ?)"
_FIELDS = ("messages", "tags", "metadata")
"""What is taken from a row that spans make; the rest of it is for suites, and could name files."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When a conversation is complete, and which are judged. Times are in seconds.

    `idle` is how long nothing may come, `longest` after which time it is judged although it goes on. `share` is the
    part of all conversations that is judged, 0 to 1. `tests` says that those of our own tests are judged, too.
    """

    idle: float = 60.0
    longest: float = 3600.0
    share: float = 1.0
    tests: bool = False


class Due(NamedTuple):
    """A bundle that is complete: how many spans it has, and how often reading it has begun without an end."""

    bundle: int
    own: bool
    continues: bool
    spans: int
    times: int


class Packed(NamedTuple):
    """A span as the spool keeps it."""

    trace: bytes
    identity: bytes
    parent: bytes | None
    conversation: bytes | None
    time: float | None
    value: bytes


class ReadingPlan(NamedTuple):
    """Bundles that are to be read, with the spans of those that are judged, and in words what is not read."""

    due: list[Due]
    spans: dict[int, list[Packed]]
    left_out: list[str]


class Contents(NamedTuple):
    """The conversations of each bundle, and in words which bundles could not be read."""

    rows: dict[int, list[Row]]
    broken: list[str]


def begin(database: sqlite3.Connection, counts: Counter[str], rules: Rules, now: float) -> ReadingPlan:
    """Choose some bundles that are complete, and note that reading them begins: it may end this process.

    One whose reading began before without an end is read alone, and after MAX_BEGUN times set aside.
    """
    limits = (now - rules.idle, now - rules.longest, MOST_SPANS, MOST_BYTES, BATCH_SIZE)
    plan = ReadingPlan([], {}, [])
    left = MOST_SPANS
    for due in [Due(*row) for row in database.execute(_DUE, limits)]:
        if due.times >= MAX_BEGUN:
            trace = _trace_of(database, due.bundle)
            plan.left_out.append(f"trace '{trace}' is skipped: reading it failed {due.times} times")
            counts["cannot be read"] += 1
            _close(database, due)
            continue
        if plan.due and (due.times or due.spans > left):
            break
        plan.due.append(due)
        left -= due.spans
        if due.times:
            break
    for due in plan.due:
        database.execute(_BEGIN, (due.bundle,))
        if due.continues:  # what comes from now on is a bundle of its own
            database.execute("DELETE FROM name WHERE bundle = ?", (due.bundle,))
        if rules.tests or not due.own:
            plan.spans[due.bundle] = _spans(database, due, plan.left_out)
    return plan


def read(plan: ReadingPlan) -> Contents:
    """Return the conversations of bundles; it needs no database, and may take long.

    Raises:
        UsageError: there is no room for temporary files.
    """
    broken: list[str] = []
    return Contents(_rows(plan.spans, broken), broken)


def finish(
    database: sqlite3.Connection, counts: Counter[str], rules: Rules, plan: ReadingPlan, contents: Contents, now: float
) -> None:
    """Keep the conversations of bundles; one that has grown meanwhile stays open, and is read again."""
    counts["cannot be read"] += len(contents.broken)
    for due in plan.due:
        database.execute("DELETE FROM begun WHERE bundle = ?", (due.bundle,))
        grown = database.execute("SELECT spans FROM bundle WHERE number = ?", (due.bundle,)).fetchone()
        if grown is None or grown[0] != due.spans:
            continue
        _close(database, due)
        if due.bundle not in plan.spans:
            counts["of tests"] += 1
            continue
        rows = contents.rows.get(due.bundle)
        if rows == []:
            counts["without a conversation"] += 1
        for row in rows or ():
            _keep(database, counts, rules, row, now)


def give_back(database: sqlite3.Connection, plan: ReadingPlan) -> None:
    """Forget that reading bundles began, where it was not what they hold that ended it."""
    database.executemany(_GIVE_BACK, [(due.bundle,) for due in plan.due])


def too_long(database: sqlite3.Connection, plan: ReadingPlan) -> list[str]:
    """Return in words that reading the only bundle did not end in time."""
    return [
        f"trace '{_trace_of(database, due.bundle)}' cannot be read: it takes more than {READ_SECONDS:g} s"
        for due in plan.due
    ]


def _close(database: sqlite3.Connection, due: Due) -> None:
    database.execute("UPDATE bundle SET open = 0 WHERE number = ?", (due.bundle,))
    if due.continues:
        database.execute("DELETE FROM name WHERE bundle = ?", (due.bundle,))


def _spans(database: sqlite3.Connection, due: Due, left_out: list[str]) -> list[Packed]:
    """Return the spans of a bundle, as many as are read at a time."""
    spans: list[Packed] = []
    size = 0
    for row in database.execute(_SPANS, (due.bundle, MOST_SPANS)):
        span = Packed(*row)
        size += len(span.value)
        if spans and size > MOST_BYTES:
            break
        spans.append(span)
    if len(spans) < due.spans:
        trace = _trace_of(database, due.bundle)
        left_out.append(
            f"trace '{trace}': {due.spans - len(spans):,} of {due.spans:,} spans are left out; a conversation is made "
            f"of at most {MOST_SPANS:,} spans and {MOST_BYTES // 2**20} MB"
        )
    return spans


def _trace_of(database: sqlite3.Connection, bundle: int) -> str | None:
    row = database.execute("SELECT trace FROM span WHERE bundle = ? LIMIT 1", (bundle,)).fetchone()
    return None if row is None else text_of(row[0])


def prune(database: sqlite3.Connection, now: float, seconds: float = RETENTION_SECONDS) -> None:
    """Forget the spans of conversations that have been silent for so long, and what is known of runs that ended."""
    old = [
        row[0] for row in database.execute("SELECT number FROM bundle WHERE NOT open AND last <= ?", (now - seconds,))
    ]
    for table, column in (("span", "bundle"), ("name", "bundle"), ("begun", "bundle"), ("bundle", "number")):
        database.executemany(f"DELETE FROM {table} WHERE {column} = ?", ((number,) for number in old))
    database.execute(
        "DELETE FROM talk WHERE state IN ('judged', 'passed') AND settled <= ? AND "
        "(run IS NULL OR run NOT IN (SELECT run FROM period))",
        (now - seconds,),
    )


def _rows(bundles: dict[int, list[Packed]], broken: list[str]) -> dict[int, list[Row]]:
    """Return the conversations of each bundle; one that no reader was made for does not keep the others waiting."""
    rows: dict[int, list[Row]] = {bundle: [] for bundle in bundles}
    try:
        for place, row in span_pieces().conversations(_members(bundles), Loss()):
            rows[place.line].append(row)
    except UsageError:  # a disk, and not what was sent
        raise
    except Exception as error:
        if len(bundles) > 1:
            items, middle = list(bundles.items()), len(bundles) // 2
            return {**_rows(dict(items[:middle]), broken), **_rows(dict(items[middle:]), broken)}
        ((first, *_),) = bundles.values()
        broken.append(f"trace '{text_of(first.trace)}' cannot be read: {type(error).__name__}: {error}")
        return {}
    return rows


def _members(bundles: dict[int, list[Packed]]) -> Iterator[Member]:
    for bundle, packed in bundles.items():
        for span in packed:
            names = (text_of(span.conversation), text_of(span.identity), text_of(span.parent), span.time)
            yield Member(Place(_FILE, bundle), marshal.loads(span.value), text_of(span.trace) or "", *names)


def _keep(database: sqlite3.Connection, counts: Counter[str], rules: Rules, row: Row, now: float) -> None:
    """Keep a conversation as one that waits to be judged, unless it was judged as it is."""
    identity = sample_id(str(row["id"]))
    if not is_sampled(identity, rules.share):
        counts["not sampled"] += 1
        return
    digest = blake2b(_json(row["messages"]).encode(), digest_size=16).digest()
    last = database.execute(_LAST, (identity,)).fetchone()
    version = 1 if last is None else last[1]
    if last is not None:
        number, _, before, state = last
        if before == digest:
            return
        if state == "waiting":
            database.execute("UPDATE talk SET digest = ?, row = ? WHERE number = ?", (digest, _row(row), number))
            return
        version += 1
        counts["continued"] += 1
    sample = identity if version == 1 else f"{identity}~{version}"
    database.execute(_NEW, (identity, version, sample, digest, _row(row), now))
    counts["conversations"] += 1


def is_sampled(identity: str, share: float) -> bool:
    """Return whether a conversation is in the sample, which its id alone decides."""
    number = int.from_bytes(blake2b(identity.encode(), digest_size=8).digest(), "big")
    return number < share * 2**64


def sample_id(identity: str) -> str:
    """Return an id as every store can hold it: without halves of characters, and not too long."""
    text = identity.encode("utf-8", "replace").decode().replace("\0", "�")
    if len(text) <= _ID_LENGTH:
        return text
    return f"{text[:_ID_LENGTH]}…{blake2b(text.encode(), digest_size=6).hexdigest()}"


def _row(row: Row) -> str:
    return _json({name: row[name] for name in _FIELDS if name in row})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), default=str)
