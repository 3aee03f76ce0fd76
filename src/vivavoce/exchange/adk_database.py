"""Sessions of Google's Agent Development Kit in the SQLite file of its `DatabaseSessionService`.

Each event is JSON in a cell of its own. Files of older versions have a column for each field of an event, and what an
event did (`actions`) pickled, which is never read.
Source: the tables that google-adk makes, of both versions of its schema.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vivavoce.errors import Problem, UsageError
from vivavoce.exchange.format import Row
from vivavoce.exchange.records import Place, Record
from vivavoce.exchange.shapes import fields_in
from vivavoce.exchange.sqlite_file import Tables, asked, json_in, no_such_tables, records_of, tables_in
from vivavoce.exchange.times import seconds

_KEYS = ("app_name", "user_id", "session_id")
_SESSION = frozenset(("app_name", "user_id", "id", "state", "update_time"))
_EVENT = frozenset((*_KEYS, "timestamp"))
_SESSIONS = """
SELECT app_name, user_id, id FROM sessions UNION SELECT app_name, user_id, session_id FROM events ORDER BY 1, 2, 3
"""
_STATE = "SELECT state, update_time FROM sessions WHERE app_name IS ? AND user_id IS ? AND id IS ?"
_EVENTS = """
SELECT * FROM events WHERE app_name IS ? AND user_id IS ? AND session_id IS ? ORDER BY timestamp, rowid
"""
_IN_JSON = frozenset(
    (
        *("content", "grounding_metadata", "custom_metadata", "usage_metadata", "citation_metadata"),
        *("input_transcription", "output_transcription"),
    )
)


def wrong_with(path: Path) -> str | None:
    """Return why an SQLite file is none of these, None if it is one."""
    return asked(path, lambda database: _wrong(tables_in(database)))


def _wrong(tables: Tables) -> str | None:
    columns = tables.get("events", frozenset())
    has_events = columns >= _EVENT and ("event_data" in columns or {"author", "content"} <= columns)
    if has_events and tables.get("sessions", frozenset()) >= _SESSION:
        return None
    return no_such_tables("an SQLite file of Google ADK has its tables sessions and events", tables)


def sessions(path: Path) -> Iterator[Record | Problem]:
    """Yield each session of a database as ADK writes it in JSON, with one session in memory at a time.

    Raises:
        UsageError: the file has no sessions of ADK.
    """

    def found(database: sqlite3.Connection) -> Iterator[Record]:
        if (wrong := _wrong(tables_in(database))) is not None:
            raise UsageError(Problem(wrong, path))
        for number, keys in enumerate(database.execute(_SESSIONS), 1):
            yield Record(Place(path, number), _session(database, keys))

    return records_of(path, found)


def _session(database: sqlite3.Connection, keys: tuple[Any, ...]) -> Row:
    app, user, identity = keys
    state, updated = database.execute(_STATE, keys).fetchone() or (None, None)
    events = database.execute(_EVENTS, keys)
    names = [str(column[0]) for column in events.description]
    return {
        "id": identity,
        "app_name": app,
        "user_id": user,
        "state": fields_in(json_in(state)),
        "last_update_time": seconds(updated),
        "events": [_event(dict(zip(names, cells, strict=True))) for cells in events],
    }


def _event(cells: Row) -> Any:
    if "event_data" in cells:
        return json_in(cells["event_data"])
    event = {name: json_in(cell) if name in _IN_JSON else cell for name, cell in cells.items() if name not in _KEYS}
    ids = json_in(event.pop("long_running_tool_ids_json", None))
    return {**event, "timestamp": seconds(event["timestamp"]), **({"long_running_tool_ids": ids} if ids else {})}
