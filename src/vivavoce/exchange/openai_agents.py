"""Sessions of the OpenAI Agents SDK, in its SQLite file: an item of OpenAI's Responses in each row.

A session with branches (`AdvancedSQLiteSession`) is a conversation for each branch.
Source: the tables that the sessions of the package make.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.exchange.format import Format, Row
from vivavoce.exchange.openai_responses import FORMAT as RESPONSES
from vivavoce.exchange.records import Place, Record
from vivavoce.files.strict_json import BrokenJson, parse

_COLUMNS = frozenset(("id", "session_id", "message_data", "created_at"))
_MAIN = "main"
_MESSAGES = "SELECT session_id, '{main}', message_data, created_at FROM {table} ORDER BY session_id, id"
_BRANCHES = """
SELECT s.session_id, s.branch_id, m.message_data, m.created_at FROM message_structure s JOIN {table} m
    ON m.id = s.message_id ORDER BY s.session_id, s.branch_id, s.sequence_number
"""


def _records(path: Path) -> Iterator[Record | Problem]:
    """Yield each session of a database, with one session in memory at a time."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = _text
            ordered = database.execute(_query(database, path))
            sessions = groupby(ordered, key=lambda row: row[:2])
            for number, ((session, branch), rows) in enumerate(sessions, 1):
                yield Record(Place(path, number), _session(session, branch, list(rows)))
    except sqlite3.Error as error:
        yield Problem(f"the database cannot be read: {error}", path)


def _query(database: sqlite3.Connection, path: Path) -> str:
    names = [str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    of_items = [name for name in names if _columns(database, name) >= _COLUMNS]
    if not of_items:
        rule = "an SQLite file of the OpenAI Agents SDK has a table with session_id and message_data"
        raise UsageError(Problem(f"{rule}; the tables here are {', '.join(names) or 'none'}", path))
    query = _BRANCHES if "message_structure" in names else _MESSAGES
    return query.format(table=_quoted(of_items[0]), main=_MAIN)


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({_quoted(table)})")}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _session(session: Any, branch: Any, rows: list[tuple[Any, ...]]) -> Row:
    known: Row = {"created_at": rows[0][3], "updated_at": rows[-1][3]}
    if branch != _MAIN:
        known["branch"] = branch
    identity = str(session) if branch == _MAIN else f"{session}/{branch}"
    return {"id": identity, "items": [_item(data) for _, _, data, _ in rows], "session_id": session, **known}


def _item(data: object) -> object:
    """Return the item of a row; what is not JSON stays as it is, and is told where it is read."""
    try:
        return cast("object", parse(data)) if isinstance(data, str) else None
    except BrokenJson:
        return data


FORMAT = Format(
    "openai-agents",
    "sessions of the OpenAI Agents SDK",
    lambda record: False,  # what its files begin with says what they are
    RESPONSES.read,
    begins=b"SQLite format 3\x00",
    records=_records,
)
