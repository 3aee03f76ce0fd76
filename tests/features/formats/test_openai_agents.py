"""Sessions that the OpenAI Agents SDK keeps in SQLite are conversations."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from agents.extensions.memory.advanced_sqlite_session import AdvancedSQLiteSession

from vivavoce import UsageError
from vivavoce.conversations.format import Loss, format_named
from vivavoce.conversations.reading import detect, read

QUESTION: Any = {"role": "user", "content": "And in Rome?"}
CALL: Any = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'}
RESULT: Any = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
WORDS: list[Any] = [{"type": "output_text", "text": "It rains.", "annotations": []}]
ANSWER: Any = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": WORDS,
}


def rows_of(path: Path) -> tuple[list[dict[str, Any]], Loss]:
    loss = Loss()
    return [row for _, row in read(path, detect(path), loss)], loss


async def test_each_session_is_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    for name in ("ann", "bob"):
        session = SQLiteSession(name, path)
        await session.add_items([QUESTION, CALL, RESULT, ANSWER])
        session.close()
    rows, loss = rows_of(path)
    assert [row["id"] for row in rows] == ["ann", "bob"]
    assert [message["role"] for message in rows[0]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert rows[0]["messages"][-1]["content"] == "It rains."
    assert rows[0]["metadata"].keys() == {"session_id", "created_at", "updated_at"}
    assert loss.entries() == []


async def test_tables_of_other_names_are_found(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session = SQLiteSession("ann", path, sessions_table="mine", messages_table="talks")
    await session.add_items([QUESTION])
    session.close()
    assert [row["id"] for row in rows_of(path)[0]] == ["ann"]


async def test_each_branch_of_a_session_is_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    session = AdvancedSQLiteSession(session_id="ann", db_path=path, create_tables=True)
    other: Any = {"role": "user", "content": "And in Oslo?"}
    await session.add_items([QUESTION, ANSWER])
    await session.add_items([other])
    await session.create_branch_from_turn(2, "again")
    await session.add_items([other, ANSWER])
    session.close()
    rows, _ = rows_of(path)
    assert {row["id"]: [message["content"] for message in row["messages"]] for row in rows} == {
        "ann": ["And in Rome?", "It rains.", "And in Oslo?"],
        "ann/again": ["And in Rome?", "It rains.", "And in Oslo?", "It rains."],
    }


def damage(path: Path, data: object) -> Path:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)")
    add = "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)"
    database.executemany(add, [("a", data), ("b", '{"role": "user", "content": "Hi."}')])
    database.commit()
    database.close()
    return path


@pytest.mark.parametrize("data", ["{cut o", None, b"\xff\xfe", 7, '{"__enc__": 1, "payload": "x"}', "[]", "NaN"])
def test_a_broken_session_is_told_and_the_next_is_read(tmp_path: Path, data: object) -> None:
    rows, loss = rows_of(damage(tmp_path / "sessions.db", data))
    assert [row["id"] for row in rows] == ["b"]
    assert [(entry.kind, entry.places) for entry in loss.entries()] == [("broken", ["line 1, conversation 'a'"])]


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE things (id)")
    database.close()
    with pytest.raises(UsageError, match="a table with session_id and message_data; the tables here are things"):
        rows_of(path)


def test_a_file_that_is_cut_off_is_told(tmp_path: Path) -> None:
    whole = damage(tmp_path / "sessions.db", "{}").read_bytes()
    path = tmp_path / "cut.db"
    path.write_bytes(whole[:2000])
    loss = Loss()
    assert list(read(path, format_named("openai-agents"), loss)) == []
    assert [entry.kind for entry in loss.entries()] == ["broken"]
