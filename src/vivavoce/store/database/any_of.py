"""A condition on many numbers at once, which is one parameter however many they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, any_, func, literal, select

from vivavoce.store.database.database import on_postgresql


def any_of(connection: Connection, column: ColumnElement[Any], numbers: Sequence[int]) -> ColumnElement[bool]:
    """Return the condition that a column holds one of some numbers, quick to write down where they are thousands."""
    if on_postgresql(connection):
        return column == any_(literal(list(numbers), ARRAY(BigInteger)))
    return column.in_(select(func.json_each(json.dumps(list(numbers))).table_valued("value").c.value))
