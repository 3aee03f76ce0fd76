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

from vivavoce.errors import UsageError
from vivavoce.exchange.format import Loss, Place, Row
from vivavoce.exchange.grouping import Member
from vivavoce.exchange.spans import read_members
from vivavoce.features.watch.spool import text_of

AT_ONCE = 50
"""Bundles that one step makes conversations of, so that what comes in meanwhile need not wait long."""
MOST_SPANS, MOST_BYTES = 10_000, 64 * 2**20
"""From here on a bundle is made conversations of although it is not silent."""
KEPT = 3600.0
"""Seconds for which the spans of a conversation are kept after the last of them, in case that it goes on."""

_FILE = Path("traces")
_ID_LENGTH = 200
_DUE = """
SELECT number, own, last > ?1 FROM bundle WHERE open AND (last <= ?1 OR first <= ?2 OR spans >= ?3 OR bytes >= ?4)
    ORDER BY last LIMIT ?5
"""
_SPANS = """
SELECT trace, identity, parent, conversation, time, value FROM span WHERE bundle = ? ORDER BY number
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


class Settled(NamedTuple):
    """How many bundles were complete, and in words which of them could not be read."""

    bundles: int
    broken: list[str]


class _Due(NamedTuple):
    bundle: int
    own: bool
    goes_on: bool


def settle(database: sqlite3.Connection, counts: Counter[str], rules: Rules, now: float) -> Settled:
    """Make conversations of some bundles that are complete."""
    limits = (now - rules.idle, now - rules.longest, MOST_SPANS, MOST_BYTES, AT_ONCE)
    due = [_Due(*row) for row in database.execute(_DUE, limits)]
    judged = [one.bundle for one in due if rules.tests or not one.own]
    counts["of tests"] += len(due) - len(judged)
    broken: list[str] = []
    found = _rows(database, judged, broken)
    counts["cannot be read"] += len(broken)
    for rows in found.values():
        if not rows:
            counts["without a conversation"] += 1
        for row in rows:
            _keep(database, counts, rules, row, now)
    for one in due:
        database.execute("UPDATE bundle SET open = 0 WHERE number = ?", (one.bundle,))
        if one.goes_on:
            database.execute("DELETE FROM name WHERE bundle = ?", (one.bundle,))
    return Settled(len(due), broken)


def prune(database: sqlite3.Connection, now: float, kept: float = KEPT) -> None:
    """Forget the spans of conversations that have been silent for so long, and what is known of runs that ended."""
    old = [row[0] for row in database.execute("SELECT number FROM bundle WHERE NOT open AND last <= ?", (now - kept,))]
    for table, column in (("span", "bundle"), ("name", "bundle"), ("bundle", "number")):
        database.executemany(f"DELETE FROM {table} WHERE {column} = ?", ((number,) for number in old))
    database.execute(
        "DELETE FROM talk WHERE state IN ('judged', 'passed') AND settled <= ? AND "
        "(run IS NULL OR run NOT IN (SELECT run FROM period))",
        (now - kept,),
    )


def _rows(database: sqlite3.Connection, bundles: list[int], broken: list[str]) -> dict[int, list[Row]]:
    """Return the conversations of each bundle; one that no reader was made for does not keep the others waiting."""
    found: dict[int, list[Row]] = {bundle: [] for bundle in bundles}
    try:
        for place, row in read_members(_members(database, bundles), Loss()):
            found[place.line].append(row)
    except (sqlite3.Error, UsageError):  # a disk, and not what was sent
        raise
    except Exception as error:
        if len(bundles) > 1:
            middle = len(bundles) // 2
            return {**_rows(database, bundles[:middle], broken), **_rows(database, bundles[middle:], broken)}
        (trace,) = database.execute("SELECT trace FROM span WHERE bundle = ? LIMIT 1", bundles).fetchone()
        broken.append(f"trace '{text_of(trace)}' cannot be read: {type(error).__name__}: {error}")
        return {}
    return found


def _members(database: sqlite3.Connection, bundles: list[int]) -> Iterator[Member]:
    for bundle in bundles:
        for trace, identity, parent, conversation, time, packed in database.execute(_SPANS, (bundle,)):
            value = marshal.loads(packed)
            names = (text_of(conversation), text_of(identity), text_of(parent), time)
            yield Member(Place(_FILE, bundle), value, text_of(trace) or "", *names)


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
        counts["went on"] += 1
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
