"""Sessions in the SQLite files of google-adk are conversations; files of its schemas are made here."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.errors import UsageError
from vivavoce.features.formats.google_adk import PICKLED

KEYS = "app_name VARCHAR(128), user_id VARCHAR(128), session_id VARCHAR(128)"
SESSIONS = """
CREATE TABLE sessions (app_name VARCHAR(128), user_id VARCHAR(128), id VARCHAR(128), state TEXT, create_time DATETIME,
    update_time DATETIME, PRIMARY KEY (app_name, user_id, id))
"""
EVENTS = (
    f"CREATE TABLE events (id VARCHAR(128), {KEYS}, invocation_id VARCHAR(256), timestamp DATETIME, event_data TEXT)"
)
OLD_EVENTS = f"""
CREATE TABLE events (id VARCHAR(128), {KEYS}, invocation_id VARCHAR(256), author VARCHAR(256), actions BLOB,
    long_running_tool_ids_json TEXT, branch VARCHAR(256), timestamp DATETIME, content TEXT, partial BOOLEAN,
    usage_metadata TEXT, error_message TEXT)
"""
CALL = {"function_call": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}
RESULT = {"function_response": {"id": "c1", "name": "weather", "response": {"result": "rain"}}}
PARTS = (
    ("user", "user", {"text": "And in Rome?"}),
    ("router", "model", CALL),
    ("router", "user", RESULT),
    ("forecaster", "model", {"text": "It rains."}),
)
EXPECTED = [
    ("user", None, "And in Rome?"),
    ("assistant", "router", None),
    ("tool", "weather", "rain"),
    ("assistant", "forecaster", "It rains."),
]


def file_of(path: Path, events: str, statement: str, rows: list[tuple[Any, ...]]) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute(SESSIONS)
        database.execute(events)
        database.executemany(
            "INSERT INTO sessions VALUES ('app', ?, 's', ?, NULL, '2026-11-23 03:31:56.616494')",
            [("ann", '{"city": "Rome"}'), ("bob", "{}")],
        )
        database.executemany(statement, rows)
        database.commit()
    return path


def now(path: Path, *more: tuple[str, Any]) -> Path:
    """Write a file as google-adk does now; the events of ann come out of their order."""
    events = [
        {"author": author, "invocation_id": "i", "timestamp": 1795395597.5, "content": {"role": role, "parts": [part]}}
        for author, role, part in PARTS
    ]
    rows: list[tuple[Any, ...]] = [
        (f"e{number}", "app", "ann", "s", "i", f"2026-11-23 03:31:5{number}", json.dumps(event))
        for number, event in reversed([*enumerate(events)])
    ]
    rows += [("e", "app", user, "s", "i", "2026-11-23 03:31:50", data) for user, data in more]
    return file_of(path, EVENTS, "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def rows_of(path: Path) -> tuple[list[dict[str, Any]], Loss]:
    loss = Loss()
    result = detect(path)
    assert result.name == "google-adk"
    return [row for _, row in read(path, result, loss)], loss


def summarize(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(message["role"], message.get("name"), message["content"]) for message in row["messages"]]


def test_each_session_is_a_conversation_in_the_order_of_its_times(tmp_path: Path) -> None:
    hello = {"author": "user", "invocation_id": "j", "content": {"role": "user", "parts": [{"text": "Hello."}]}}
    rows, loss = rows_of(now(tmp_path / "sessions.db", ("bob", json.dumps(hello))))
    assert [(row["id"], row["metadata"]["user_id"]) for row in rows] == [("s", "ann"), ("s", "bob")]
    assert summarize(rows[0]) == EXPECTED
    assert summarize(rows[1]) == [("user", None, "Hello.")]
    assert rows[0]["messages"][1]["tool_calls"][0]["id"] == rows[0]["messages"][2]["tool_call_id"]
    assert (rows[0]["metadata"]["app_name"], rows[0]["metadata"]["session_state"]) == ("app", {"city": "Rome"})
    assert loss.entries() == []


def test_files_of_older_versions_are_read_but_for_what_is_pickled(tmp_path: Path) -> None:
    rows = [
        (
            *(f"e{number}", "app", "ann", "s", "i", author, b"pickled", "[]", None, f"2026-11-23 03:31:5{number}.5"),
            *(json.dumps({"role": role, "parts": [part]}), 0, '{"total_token_count": 3}', None),
        )
        for number, (author, role, part) in enumerate(PARTS)
    ]
    statement = f"INSERT INTO events VALUES ({', '.join('?' * len(rows[0]))})"
    [ann, _], loss = rows_of(file_of(tmp_path / "sessions.db", OLD_EVENTS, statement, rows))
    assert summarize(ann) == EXPECTED
    assert ann["messages"][0]["timestamp"] == "2026-11-23T03:31:50.500000+00:00"
    assert ann["messages"][3]["metadata"]["google-adk"]["usage_metadata"] == {"total_token_count": 3}
    assert [(entry.kind, entry.what, entry.count) for entry in loss.entries()] == [("dropped", PICKLED, 4)]


@pytest.mark.parametrize("data", ["{cut o", None, b"\xff\xfe", 7, "[]", '{"author": "user"}', "NaN"])
def test_a_broken_session_is_told_and_the_others_are_read(tmp_path: Path, data: Any) -> None:
    rows, loss = rows_of(now(tmp_path / "sessions.db", ("bob", data)))
    assert [row["metadata"]["user_id"] for row in rows] == ["ann"]
    assert [(entry.kind, entry.places) for entry in loss.entries()] == [("broken", ["line 2, conversation 's'"])]


def test_a_database_of_something_else_says_what_was_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE sessions (id)")
    with pytest.raises(UsageError) as error:
        detect(path)
    assert "OpenAI Agents SDK SQLite file needs a table with session_id and message_data" in str(error.value)
    assert "Google ADK has its tables sessions and events; the tables here are sessions" in str(error.value)


def test_a_database_of_both_frameworks_is_asked_about(tmp_path: Path) -> None:
    path = now(tmp_path / "both.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE agent_messages (id, session_id, message_data, created_at)")
    with pytest.raises(UsageError, match=r"say which with --from: openai-agents, google-adk"):
        detect(path)


def test_a_file_that_only_begins_like_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(now(tmp_path / "sessions.db").read_bytes()[:5000])
    with pytest.raises(UsageError, match="cannot be read"):
        detect(path)
