"""Rows that are inserted many at a time, and conditions with many values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, Dialect, Table, any_, func, insert, literal, select
from sqlalchemy.exc import DBAPIError

from vivavoce.store.database.database import driver_errors, on_postgresql


def any_of(connection: Connection, column: ColumnElement[Any], numbers: Sequence[int]) -> ColumnElement[bool]:
    """Return the condition that a column holds one of some numbers, quick to write down where they are thousands."""
    if on_postgresql(connection):
        return column == any_(literal(list(numbers), ARRAY(BigInteger)))
    return column.in_(select(func.json_each(json.dumps(list(numbers))).table_valued("value").c.value))


Row = tuple[Any, ...]
Columns = tuple[str, ...]

LARGEST = 512
"""Rows of one statement; times the columns of the widest table this stays far below SQLite's 32,766 parameters."""


def insert_rows(
    connection: Connection, table: Table, columns: Columns, rows: Sequence[Row], *, once: bool = False
) -> None:
    """Insert rows that hold these columns; they go past the types of the columns, so their text has to be storable.

    `once` leaves out those whose key is there already.

    Raises:
        UnicodeEncodeError: a text has a lone surrogate.
        DataError: PostgreSQL does not take a text with U+0000.
    """
    if on_postgresql(connection) and not once:
        _stream(connection, table, columns, rows)
        return
    start = 0
    while start < len(rows):
        size = min(LARGEST, 1 << ((len(rows) - start).bit_length() - 1))
        values = tuple(chain.from_iterable(rows[start : start + size]))
        connection.exec_driver_sql(_statement(table, columns, size, connection.dialect, once), values)
        start += size


def _stream(connection: Connection, table: Table, columns: Columns, rows: Sequence[Row]) -> None:
    if not rows:
        return
    statement = f"COPY {table.name} ({', '.join(columns)}) FROM STDIN"
    driver: Any = connection.connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as stream:
            for row in rows:
                stream.write_row(row)
    except driver_errors() as error:
        raise DBAPIError.instance(statement, None, error, Exception, dialect=connection.dialect) from error


@cache
def _statement(table: Table, columns: Columns, size: int, dialect: Dialect, once: bool) -> str:
    one = str(insert(table).inline().values(dict.fromkeys(columns)).compile(dialect=dialect))
    whole = one + f", {one.partition(' VALUES ')[2]}" * (size - 1)  # compiling the whole would cost 30 ms
    return f"{whole} ON CONFLICT DO NOTHING" if once else whole
