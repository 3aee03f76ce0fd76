"""Records that belong together, wherever in files they stand: spans, runs and events, grouped into conversations.

They wait in a temporary database on disk, so that memory holds one conversation at a time.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.conversations.format import Loss, Member, Place
from vivavoce.errors import UsageError

_CACHE_KB = 32_000
_SCHEMA = f"""
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -{_CACHE_KB};
CREATE TABLE member (
    number INTEGER PRIMARY KEY, trace BLOB, identity BLOB, parent BLOB, conversation BLOB, time NUMERIC, line INTEGER,
    file INTEGER, value BLOB
);
"""
_INSERT = """
INSERT INTO member (trace, identity, parent, conversation, time, line, file, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_REPEATED_TABLE = """
CREATE INDEX by_trace ON member (trace, identity, conversation);
CREATE TABLE repeated AS
    SELECT trace, identity FROM member WHERE identity IS NOT NULL GROUP BY trace, identity HAVING count(*) > 1;
"""
_STATES = "SELECT number, file, line, value FROM member WHERE trace = ? AND identity = ? ORDER BY number"
_LATER = "DELETE FROM member WHERE trace = ? AND identity = ? AND number NOT IN (?, ?)"
_REPLACE = """
UPDATE member SET parent = it.parent, conversation = it.conversation, time = it.time, line = it.line, file = it.file,
    value = it.value FROM member it WHERE member.number = ? AND it.number = ?
"""
_TRACES = """
CREATE TABLE trace (trace BLOB PRIMARY KEY, named BLOB, names INTEGER) WITHOUT ROWID;
INSERT INTO trace SELECT trace, min(conversation), count(DISTINCT conversation) FROM member GROUP BY trace;
"""
_OF_SEVERAL = "SELECT trace FROM trace WHERE names > 1"
_LINKS = "SELECT number, identity, parent, conversation FROM member WHERE trace = ?"
_IN_ORDER = """
WITH assigned AS (
    SELECT number, time, trace, coalesce(conversation, CASE WHEN names = 1 THEN named END) AS talk
        FROM member JOIN trace USING (trace)
), met AS (
    SELECT number, time, min(number) OVER (PARTITION BY talk, CASE WHEN talk IS NULL THEN trace END) AS first, talk
        FROM assigned
), ordered AS (
    SELECT number, first, talk FROM met ORDER BY first, time IS NULL, time, number LIMIT -1
)
SELECT first, talk, trace, identity, parent, time, line, file, value FROM ordered CROSS JOIN member USING (number)
"""
"""The limit keeps the values out of what is sorted."""


class Group(NamedTuple):
    """The members of one conversation; `id` is the conversation's, or the trace's where no member names any."""

    id: str
    members: list[Member]


def group_members(members: Iterable[Member], loss: Loss) -> Iterator[Group]:
    """Yield each conversation with its members in the order of their times, in the order of their first members.

    Raises:
        UsageError: there is no room for temporary files.
    """
    try:
        with closing(sqlite3.connect("")) as database:
            files = _fill(database, members, loss)
            yield from _groups(database, files)
    except sqlite3.OperationalError as error:
        raise UsageError(f"the temporary folder cannot be used ({error}); set TMPDIR to another folder") from error


def _fill(database: sqlite3.Connection, members: Iterable[Member], loss: Loss) -> list[Path]:
    database.executescript(_SCHEMA)
    files: dict[Path, int] = {}
    database.executemany(_INSERT, (_row(member, files) for member in members))
    _keep_once(database, list(files), loss)
    return list(files)


def _row(member: Member, files: dict[Path, int]) -> tuple[Any, ...]:
    place, value, trace, conversation, identity, parent, time = member
    names = (_key(trace), _key(identity), _key(parent), _key(conversation))
    return (*names, time, place.line, files.setdefault(place.file, len(files)), marshal.dumps(value))


def _keep_once(database: sqlite3.Connection, files: list[Path], loss: Loss) -> None:
    """Keep of the records with the same id the last one, in the place of the first."""
    database.executescript(_REPEATED_TABLE)
    for own in database.execute("SELECT trace, identity FROM repeated"):
        states = database.execute(_STATES, own)
        first, _, _, before = states.fetchone()
        last = first
        for number, file, line, value in states:
            loss.stands_at(Place(files[file], line))
            loss.add_repeated("records with the same id")
            if value != before:
                loss.add_dropped("an earlier state of a record that comes again")
                last, before = number, value
        database.execute(_LATER, (*own, first, last))
        if last != first:
            database.execute(_REPLACE, (first, last))
            database.execute("DELETE FROM member WHERE number = ?", (last,))


def _groups(database: sqlite3.Connection, files: list[Path]) -> Iterator[Group]:
    database.executescript(_TRACES)
    for (trace,) in database.execute(_OF_SEVERAL).fetchall():
        _name_below(database, trace)
    for _, rows in groupby(database.execute(_IN_ORDER), key=itemgetter(0)):
        members = [_member(row, files) for row in rows]
        yield Group(members[0].conversation or members[0].trace, members)


def _name_below(database: sqlite3.Connection, trace: bytes) -> None:
    """Give what is below a member that names a conversation the same one, in a trace that has several."""
    links = database.execute(_LINKS, (trace,)).fetchall()
    above = {identity: (parent, conversation) for _, identity, parent, conversation in links if identity is not None}
    known: dict[bytes, bytes | None] = {}  # by identity: the conversation of a member, or of the nearest above it
    for number, _, parent, own in links:
        if own is not None:
            continue
        path: list[bytes] = []
        at, name = parent, None
        while name is None and at in above and at not in known:
            known[at] = None  # where it is met again, it is in a circle
            path.append(at)
            at, name = above[at]
        if name is None and at is not None:
            name = known.get(at)
        known.update(dict.fromkeys(path, name))
        if name is not None:
            database.execute("UPDATE member SET conversation = ? WHERE number = ?", (name, number))


def _member(row: tuple[Any, ...], files: list[Path]) -> Member:
    _, talk, trace, identity, parent, time, line, file, value = row
    place = Place(files[file], line)
    return Member(place, marshal.loads(value), _name(trace), _text(talk), _text(identity), _text(parent), time)


def _key(text: str | None) -> bytes | None:
    """Return a text as bytes: one may have halves of characters, which the database takes for no text."""
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(key: bytes | None) -> str | None:
    return None if key is None else _name(key)


def _name(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
