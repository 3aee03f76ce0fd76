from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy import insert, select

from vivavoce.store.database import schema
from vivavoce.store.database.schema import Text, storable
from vivavoce.store.runs.rows import AttemptCells, ScoreCells, StatusRow, TurnCells
from vivavoce.store.store import Store

HOSTILE = "a\ud800b\0 ü"


@pytest.mark.parametrize(
    ("text", "with_nul", "without"),
    [
        ("plain", "plain", "plain"),
        ("Grüße 🎓", "Grüße 🎓", "Grüße 🎓"),
        (HOSTILE, "a\\ud800b\0 ü", "a\\ud800b\\u0000 ü"),
        ("\0", "\0", "\\u0000"),
    ],
)
def test_what_no_database_takes_is_escaped(text: str, with_nul: str, without: str) -> None:
    assert (storable(text, nul=True), storable(text, nul=False)) == (with_nul, without)
    assert storable(without, nul=False) == without


def test_every_column_of_text_has_a_type_that_escapes() -> None:
    columns = [column for table in schema.metadata.tables.values() for column in table.columns]
    assert [str(column) for column in columns if isinstance(column.type, sa.String)] == []
    assert sum(isinstance(column.type, Text) for column in columns) > 50


def test_what_was_written_is_found_by_what_was_given(store: Store) -> None:
    target, key = schema.replies, schema.replies.c.key
    with store.database.writing() as connection:
        connection.execute(insert(target).values(key=HOSTILE, model="m", reply="{}", created_at=1.0))
    with store.database.connected() as connection:
        for found in (key == HOSTILE, key.in_([HOSTILE]), sa.tuple_(key, target.c.model) == (HOSTILE, "m")):
            (kept,) = connection.execute(select(key).where(found)).scalars()
            assert kept == storable(HOSTILE, nul=connection.dialect.name == "sqlite")


@pytest.mark.parametrize(
    ("table", "numbers", "cells"),
    [
        (schema.attempts, ("id",), AttemptCells._fields),
        (schema.turns, ("attempt_id",), TurnCells._fields),
        (schema.scores, ("id", "attempt_id"), ScoreCells._fields),
        (schema.sample_index, (), StatusRow._fields),
    ],
)
def test_a_row_names_every_column_of_its_table(table: sa.Table, numbers: tuple[str, ...], cells: tuple[str]) -> None:
    assert {*numbers, *cells} == set(table.columns.keys())
