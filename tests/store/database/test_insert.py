from __future__ import annotations

import pytest
from sqlalchemy import func, select

from vivavoce.store.database import schema
from vivavoce.store.database.address import Place
from vivavoce.store.database.database import reach
from vivavoce.store.database.insert import LARGEST, insert_rows

from .. import cases


@pytest.mark.parametrize("count", [0, 1, 3, LARGEST - 1, LARGEST, LARGEST * 2 + 5])
def test_every_row_is_inserted_in_order(address: str, count: int) -> None:
    cases.begun(address).close()
    engine = reach(Place(address), create=False)
    with engine.begin() as connection:
        columns = ("id", "suite", "spec", "base", "options", "status", "started_at", "version")
        rows = [(f"{n:05}", "s", "{}", "", "{}", "", 1.0, "") for n in range(count)]
        insert_rows(connection, schema.runs, columns, rows)
        ids = connection.execute(select(schema.runs.c.id).where(schema.runs.c.suite == "s")).scalars().all()
        assert connection.execute(select(func.count()).select_from(schema.runs)).scalar_one() == count + 1
    engine.dispose()
    assert ids == [f"{n:05}" for n in range(count)]
