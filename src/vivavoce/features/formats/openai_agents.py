"""Sessions of the OpenAI Agents SDK, in its SQLite file: an item of OpenAI's Responses in each row.

A session with branches (`AdvancedSQLiteSession`) is a conversation for each branch.
Source: the tables that the sessions of the package make.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from vivavoce.conversations.format import Format, Place, Record, Row
from vivavoce.errors import Problem, UsageError
from vivavoce.features.formats.openai_responses import FORMAT as RESPONSES
from vivavoce.features.formats.sqlite_file import (
    BEGINS,
    Tables,
    asked,
    json_in,
    no_such_tables,
    quoted,
    records_of,
    tables_in,
)

_COLUMNS = frozenset(("id", "session_id", "message_data", "created_at"))
_MAIN = "main"
_MESSAGES = "SELECT session_id, '{main}', message_data, created_at FROM {table} ORDER BY session_id, id"
_BRANCHES = """
SELECT s.session_id, s.branch_id, m.message_data, m.created_at FROM message_structure s JOIN {table} m
    ON m.id = s.message_id ORDER BY s.session_id, s.branch_id, s.sequence_number
"""


def _records(path: Path) -> Iterator[Record | Problem]:
    """Yield each session of a database, with one session in memory at a time."""

    def sessions(database: sqlite3.Connection) -> Iterator[Record]:
        tables = tables_in(database)
        if (wrong := _wrong(tables)) is not None:
            raise UsageError(Problem(wrong, path))
        ordered = database.execute(_query(tables))
        for number, ((session, branch), rows) in enumerate(groupby(ordered, key=lambda row: row[:2]), 1):
            yield Record(Place(path, number), _session(session, branch, list(rows)))

    return records_of(path, sessions)


def _wrong(tables: Tables) -> str | None:
    if any(columns >= _COLUMNS for columns in tables.values()):
        return None
    return no_such_tables(
        "an SQLite file of the OpenAI Agents SDK has a table with session_id and message_data", tables
    )


def _query(tables: Tables) -> str:
    of_items = next(name for name, columns in tables.items() if columns >= _COLUMNS)
    query = _BRANCHES if "message_structure" in tables else _MESSAGES
    return query.format(table=quoted(of_items), main=_MAIN)


def _session(session: Any, branch: Any, rows: list[tuple[Any, ...]]) -> Row:
    known: Row = {"created_at": rows[0][3], "updated_at": rows[-1][3]}
    if branch != _MAIN:
        known["branch"] = branch
    identity = str(session) if branch == _MAIN else f"{session}/{branch}"
    return {"id": identity, "items": [json_in(data) for _, _, data, _ in rows], "session_id": session, **known}


FORMAT = Format(
    "openai-agents",
    "sessions of the OpenAI Agents SDK",
    lambda record: False,  # what its files begin with, and their tables, say what they are
    RESPONSES.read,
    begins=BEGINS,
    wrong_with=lambda path: asked(path, lambda database: _wrong(tables_in(database))),
    records=_records,
)
