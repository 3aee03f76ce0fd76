"""Events and sessions of Google's Agent Development Kit, in JSON and in its SQLite file.

They are read from JSON, and from the SQLite file of its `DatabaseSessionService`. The author says who speaks;
agents are named. Pieces of an answer that comes whole later are left out, and so is what was taken back. Calls and what
came of them are read as in Gemini's contents.
Source: the classes `Event` and `Session` of google-adk.

Each event is JSON in a cell of its own. Files of older versions have a column for each field of an event, and what an
event did (`actions`) pickled, which is never read.
Source: the tables that google-adk makes, of both versions of its schema.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from vivavoce.conversations.format import Loss, Place, Record, Row, scan_records
from vivavoce.conversations.shapes import (
    Items,
    Message,
    Messages,
    Unreadable,
    fields_in,
    hand_over,
    seconds,
    set_aside,
    text_in,
)
from vivavoce.errors import Problem, UsageError
from vivavoce.features.formats.gemini import Pairing, either, parts_of, read_content
from vivavoce.features.formats.sqlite_file import (
    BEGINS,
    Tables,
    find_problem,
    json_in,
    no_such_tables,
    records_of,
    tables_in,
)
from vivavoce.files.rows import open_file

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
    """Return why an SQLite file is not one of these, None if it is one."""
    return find_problem(path, lambda database: _wrong(tables_in(database)))


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

    def read_sessions(database: sqlite3.Connection) -> Iterator[Record]:
        if (wrong := _wrong(tables_in(database))) is not None:
            raise UsageError(Problem(wrong, path))
        for number, keys in enumerate(database.execute(_SESSIONS), 1):
            yield Record(Place(path, number), _session(database, keys))

    return records_of(path, read_sessions)


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


NAME = "google-adk"
_USER = "user"
_NAMES = {"appName": "app_name", "userId": "user_id", "lastUpdateTime": "last_update_time", "state": "session_state"}
_TRANSCRIPTS = (("inputTranscription", "user"), ("outputTranscription", "model"))
_LATEST = 253_402_300_799
PICKLED = "state changes and rollbacks of events: this is pickled (`adk migrate session` writes it as JSON)"


def _is_event(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    event = cast("Row", item)
    return isinstance(event.get("author"), str) and ("invocationId" in event or "invocation_id" in event)


def _read(items: Items, beside: Row, loss: Loss) -> list[Message]:
    for key, ours in _NAMES.items():
        if key in beside and (value := beside.pop(key)) not in (None, {}):
            beside[ours] = value
    messages: list[Message] = []
    pairing = Pairing(loss)
    waiting: list[Row] = []
    for index, event in _valid(items, loss):
        content = _content(event)
        if content is None:
            loss.aside("events without content", index)
            waiting.append(_more(event))
            continue
        read = read_content(content, index, pairing, loss)
        _tell_who_and_when(read, event)
        if waiting:
            set_aside(read[0], NAME, {"before": waiting})
            waiting = []
        set_aside(read[0], NAME, _more(event))
        messages += read
        if (receiver := _receiver(event)) is not None:
            hand_over(messages, receiver, event["author"])
    if waiting and messages:
        set_aside(messages[-1], NAME, {"after": waiting})
    return messages


def _valid(items: Items, loss: Loss) -> Iterator[tuple[int, Row]]:
    """Yield the events that count: whole ones that were not taken back."""
    events: list[tuple[int, Row]] = []
    for index, item in enumerate(items):
        if not _is_event(item):
            raise Unreadable(f"event {index}: needs an author and an invocation id")
        event = cast("Row", item)
        if isinstance(event.get("actions"), bytes):
            loss.add_dropped(PICKLED, index)
        if event.get("partial"):
            loss.add_repeated("chunks of complete answers")
            continue
        actions: Any = event.get("actions")
        since = either(cast("Row", actions), "rewindBeforeInvocationId") if isinstance(actions, dict) else None
        if since is not None:
            first = next(
                (at for at, (_, earlier) in enumerate(events) if either(earlier, "invocationId") == since), len(events)
            )
            loss.add_dropped("rolled-back events", index, len(events) - first + 1)
            del events[first:]
        else:
            events.append((index, event))
    return iter(events)


def _content(event: Row) -> Row | None:
    """Return the content of an event, with the role of its author; of speech, what was understood at last."""
    content: Any = event.get("content")
    if isinstance(content, dict) and cast("Row", content).get("parts"):
        fields = cast("Row", content)
        parts = parts_of(fields)
        if parts is None:
            return fields
        answers = any(either(part, "functionResponse") is not None for part in parts)
        return {**fields, "role": "user" if event["author"] == _USER or answers else "model"}
    for key, role in _TRANSCRIPTS:
        transcript: Any = either(event, key)
        if (
            isinstance(transcript, dict)
            and cast("Row", transcript).get("finished")
            and cast("Row", transcript).get("text")
        ):
            return {"role": role, "parts": [{"text": str(cast("Row", transcript)["text"])}]}
    return None


def _tell_who_and_when(read: list[Message], event: Row) -> None:
    time = _time(event.get("timestamp"))
    for message in read:
        if time is not None:
            message["timestamp"] = time
        if message["role"] == "user" and event["author"] != _USER:
            message["role"] = "assistant"
        if message["role"] == "assistant" and event["author"] != _USER:
            message["name"] = event["author"]


def _receiver(event: Row) -> str | None:
    """Return the agent to which an event transfers the conversation."""
    actions: Any = event.get("actions")
    return text_in(either(cast("Row", actions), "transferToAgent")) if isinstance(actions, dict) else None


def _time(seconds: Any) -> str | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat() if 0 < seconds < _LATEST else None


def _more(event: Row) -> Row:
    """Return what an event has in addition to its content, without what is empty."""
    fields = {
        key: value for key, value in event.items() if key not in ("content", "author") and value not in (None, {})
    }
    actions: Any = fields.get("actions")
    if isinstance(actions, bytes):
        del fields["actions"]
    elif isinstance(actions, dict):
        fields["actions"] = {key: value for key, value in cast("Row", actions).items() if value not in (None, {})}
    return {key: value for key, value in fields.items() if value != {}}


def _records(path: Path) -> Iterator[Record | Problem]:
    with open_file(path) as file:
        is_database = file.read(len(BEGINS)) == BEGINS
    return sessions(path) if is_database else scan_records(path)


FORMAT = replace(
    Messages(NAME, "Google ADK events and sessions", ("events",), _is_event, _is_event, _read).format(),
    begins=BEGINS,
    wrong_with=wrong_with,
    records=_records,
)
