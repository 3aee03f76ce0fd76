"""SQLite files that frameworks keep their sessions in."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.conversations.format import Record
from vivavoce.errors import Problem

BEGINS = b"SQLite format 3\x00"

Tables = Mapping[str, frozenset[str]]
"""The columns of each table of a file."""


def tables_in(database: sqlite3.Connection) -> Tables:
    """Return the tables of a database and their columns."""
    names = [str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: _columns(database, name) for name in names}


def _columns(database: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(str(row[1]) for row in database.execute(f"PRAGMA table_info({quote_name(table)})"))


def quote_name(name: str) -> str:
    """Return the name of a table as a query has it."""
    return '"' + name.replace('"', '""') + '"'


def no_such_tables(rule: str, tables: Collection[str]) -> str:
    """Return what an error says of a file without the tables that a rule asks for."""
    return f"{rule}; the tables here are {', '.join(tables) or 'none'}"


def find_problem(path: Path, question: Callable[[sqlite3.Connection], str | None]) -> str | None:
    """Return what a question says is wrong with a file, or why the file cannot be read; None if nothing is wrong."""
    try:
        with closing(_open(path)) as database:
            return question(database)
    except sqlite3.Error as error:
        return _unreadable(error)


def records_of(path: Path, read: Callable[[sqlite3.Connection], Iterator[Record]]) -> Iterator[Record | Problem]:
    """Yield the records of a database, and a `Problem` where it cannot be read."""
    try:
        with closing(_open(path)) as database:
            yield from read(database)
    except sqlite3.Error as error:
        yield Problem(_unreadable(error), path)


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    database.text_factory = _text
    return database


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _unreadable(error: sqlite3.Error) -> str:
    return f"the database cannot be read: {error}"


def json_in(cell: object) -> object:
    """Return what the JSON of a cell holds; what is not JSON stays as it is, and its reader reports it."""
    try:
        return cast("object", parse(cell)) if isinstance(cell, str) else None
    except BrokenJson:
        return cell
