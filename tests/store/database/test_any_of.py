from __future__ import annotations

import pytest
from sqlalchemy import select

from vivavoce.store.database.database import any_of
from vivavoce.store.database.schema import unread
from vivavoce.store.store import Store


@pytest.mark.parametrize("numbers", [(), (3,), (2**62, 1), range(20_000)])
def test_a_column_holds_one_of_the_numbers_or_none(store: Store, numbers: range) -> None:
    held = (1, 3, 2**62)
    with store.database.writing() as connection:
        connection.execute(unread.insert(), [{"attempt_id": one, "grading_id": ""} for one in held])
        column = unread.c.attempt_id
        found = connection.execute(select(column).where(any_of(connection, column, numbers))).scalars()
        assert sorted(found) == [one for one in held if one in numbers]
