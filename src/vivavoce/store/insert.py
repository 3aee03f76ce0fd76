"""Inserting many rows with few statements.

sqlite3 lets go of the interpreter for each statement and, while another thread computes, gets it back only after 5 ms;
so rows go in by the hundred, in powers of two, whose statements stay prepared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

from sqlalchemy import Connection, Dialect, Table, insert

from vivavoce.store.encode import Row

LARGEST = 512
"""Rows of one statement; times the columns of the widest table this stays far below SQLite's 32,766 parameters."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row], *, once: bool = False) -> None:
    """Insert rows that hold every column of the table in order, but for a number that the database gives.

    `once` leaves out those whose key is there already.
    """
    start = 0
    while start < len(rows):
        size = min(LARGEST, 1 << ((len(rows) - start).bit_length() - 1))
        values = tuple(chain.from_iterable(rows[start : start + size]))
        connection.exec_driver_sql(_statement(table, size, connection.dialect, once), values)
        start += size


@cache
def _statement(table: Table, size: int, dialect: Dialect, once: bool) -> str:
    columns = [column.key for column in table.columns if column is not table.autoincrement_column]
    one = str(insert(table).inline().values(dict.fromkeys(columns)).compile(dialect=dialect))
    whole = one + f", {one.partition(' VALUES ')[2]}" * (size - 1)  # compiling the whole would cost 30 ms
    return f"{whole} ON CONFLICT DO NOTHING" if once else whole
