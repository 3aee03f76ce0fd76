"""Records that belong together, wherever in files they stand: spans, runs and events, grouped into conversations.

They wait in a temporary database on disk, so that memory holds one conversation at a time.
"""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast

from vivavoce.errors import UsageError
from vivavoce.exchange.loss import Loss
from vivavoce.exchange.records import Place

_CACHE_KB = 32_000
_SCHEMA = f"""
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -{_CACHE_KB};
CREATE TABLE member (
    number INTEGER PRIMARY KEY, trace BLOB, identity BLOB, parent BLOB, conversation BLOB, time NUMERIC, line INTEGER,
    file INTEGER, value BLOB
);
CREATE UNIQUE INDEX once ON member (trace, identity) WHERE identity IS NOT NULL;
"""
_INSERT = """
INSERT INTO member (trace, identity, parent, conversation, time, line, file, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_SAME = "SELECT number, value FROM member WHERE trace = ? AND identity = ?"
_REPLACE = "UPDATE member SET parent = ?, conversation = ?, time = ?, line = ?, file = ?, value = ? WHERE number = ?"
_TRACES = """
CREATE TABLE trace AS
    SELECT trace, min(conversation) AS conversation, count(DISTINCT conversation) AS conversations FROM member
    GROUP BY trace;
CREATE UNIQUE INDEX by_trace ON trace (trace);
"""
_OF_SEVERAL = "SELECT trace FROM trace WHERE conversations > 1"
_LINKS = "SELECT number, identity, parent, conversation FROM member WHERE trace = ?"
_GROUPS = """
CREATE TABLE assigned AS
    SELECT number, time, coalesce(member.conversation, CASE WHEN conversations = 1 THEN trace.conversation END) AS talk,
        trace FROM member JOIN trace USING (trace);
CREATE INDEX by_group ON assigned (talk, trace);
CREATE TABLE met AS
    SELECT talk, CASE WHEN talk IS NULL THEN trace END AS alone, min(number) AS first FROM assigned GROUP BY 1, 2;
CREATE INDEX by_talk ON met (talk, alone);
"""
_IN_ORDER = """
SELECT first, number FROM assigned JOIN met
    ON met.talk IS assigned.talk AND met.alone IS CASE WHEN assigned.talk IS NULL THEN assigned.trace END
    ORDER BY first, assigned.time IS NULL, assigned.time, number
"""
_VALUE = """
SELECT trace.conversation, conversations, member.* FROM member JOIN trace USING (trace) WHERE number = ?
"""


class Member(NamedTuple):
    """One record of a conversation.

    Attributes:
        place: where it stands.
        value: what the reader wants back of it, as plain data.
        trace: what it belongs to for certain: the trace of a span, the number of a conversation.
        conversation: what several traces have in common; it counts for the members of the trace that name none, and
            if a trace has several, for what is below the one that names it.
        identity: its own id within the trace; a record that comes again is kept once.
        parent: the id of the record that it is below.
        time: by which members are sorted, in any unit; members without come last, in the order of the files.
    """

    place: Place
    value: Any
    trace: str
    conversation: str | None = None
    identity: str | None = None
    parent: str | None = None
    time: float | None = None


class Group(NamedTuple):
    """The members of one conversation; `id` is the conversation's, or the trace's where no member names any."""

    id: str
    members: list[Member]


def grouped(members: Iterable[Member], loss: Loss) -> Iterator[Group]:
    """Yield each conversation with its members in the order of their times, in the order of their first members.

    Raises:
        UsageError: there is no room for temporary files.
    """
    try:
        with closing(sqlite3.connect("")) as database:
            files = _fill(database, members, loss)
            yield from _groups(database, files)
    except sqlite3.OperationalError as error:
        raise UsageError(
            f"the temporary folder cannot hold what is grouped ({error}); set TMPDIR to another"
        ) from error


def _fill(database: sqlite3.Connection, members: Iterable[Member], loss: Loss) -> list[Path]:
    database.executescript(_SCHEMA)
    files: dict[Path, int] = {}
    add = database.execute
    for member in members:
        place = member.place
        value = marshal.dumps(member.value)
        file = files.setdefault(place.file, len(files))
        names = (_key(member.parent), _key(member.conversation), member.time, place.line, file, value)
        own = (_key(member.trace), _key(member.identity))
        try:
            add(_INSERT, (*own, *names))
        except sqlite3.IntegrityError:
            number, before = add(_SAME, own).fetchone()
            loss.repeated("records with the same id")
            if before != value:
                loss.dropped("an earlier state of a record that comes again")
                add(_REPLACE, (*names, number))
    return list(files)


def _groups(database: sqlite3.Connection, files: list[Path]) -> Iterator[Group]:
    database.executescript(_TRACES)
    for (trace,) in database.execute(_OF_SEVERAL).fetchall():
        _name_below(database, trace)
    database.executescript(_GROUPS)
    ordered = database.execute(_IN_ORDER)
    for _, numbers in groupby(ordered, key=lambda row: row[0]):
        rows = [database.execute(_VALUE, (number,)).fetchone() for _, number in numbers]
        members = [_member(row, files) for row in rows]
        yield Group(members[0].conversation or members[0].trace, members)


def _name_below(database: sqlite3.Connection, trace: bytes) -> None:
    """Give what is below a member that names a conversation the same one, in a trace that has several."""
    links = database.execute(_LINKS, (trace,)).fetchall()
    above = {identity: (parent, conversation) for _, identity, parent, conversation in links if identity is not None}
    for number, _, parent, own in links:
        found, seen = own, set[bytes]()
        while found is None and parent in above and parent not in seen:
            seen.add(parent)
            parent, found = above[parent]
        if own is None and found is not None:
            database.execute("UPDATE member SET conversation = ? WHERE number = ?", (found, number))


def _member(row: tuple[Any, ...], files: list[Path]) -> Member:
    of_trace, conversations, _, trace, identity, parent, own, time, line, file, value = row
    conversation = own if own is not None else of_trace if conversations == 1 else None
    return Member(
        Place(files[file], line),
        marshal.loads(value),
        cast("str", _text(trace)),
        _text(conversation),
        _text(identity),
        _text(parent),
        time,
    )


def _key(text: str | None) -> bytes | None:
    """Return a text as bytes: one may have halves of characters, which the database takes for no text."""
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode("utf-8", "surrogatepass")
