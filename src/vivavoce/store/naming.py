"""Finding a run or a grading by what a person types: an id, its beginning or its end, or `latest`."""

from __future__ import annotations

import re

from sqlalchemy import Column, ColumnElement, Connection, Table, func, or_, select

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.store.decode import AnyRow
from vivavoce.store.encode import escape, escape_nul

OFFERED = 20
"""Names that an error considers or lists."""


def find(connection: Connection, table: Table, time: Column[float], name: str, *among: ColumnElement[bool]) -> AnyRow:
    """Return the row whose id is `name`, or alone begins with it or ends with it after a hyphen.

    `latest` is the newest, `latest~1` the one before.

    Raises:
        UsageError: no row, or more than one, has that name.
    """
    name = escape_nul(escape(name))
    word = table.name.removesuffix("s")
    newest = select(table).where(*among).order_by(time.desc(), table.c.id.desc())
    if latest := re.fullmatch(r"latest(?:~(\d{1,9}))?", name):
        row = connection.execute(newest.offset(int(latest[1] or 0)).limit(1)).first()
        if row is not None:
            return row
        there = connection.execute(select(func.count()).select_from(table).where(*among)).scalar_one()
        raise UsageError(f"no {word} '{name}': there {_are(there, word)}")
    begins = func.substr(table.c.id, 1, len(name)) == name
    ends = func.substr(table.c.id, func.length(table.c.id) - len(name), len(name) + 1) == f"-{name}"
    fitting = connection.execute(newest.where(or_(begins, ends)).limit(OFFERED)).all()
    exact = [row for row in fitting if row.id == name]
    if len(exact or fitting) == 1:
        return (exact or fitting)[0]
    ids = [row.id for row in fitting or connection.execute(newest.limit(OFFERED)).all()]
    if fitting:
        raise UsageError(f"'{name}' fits several {table.name}: {', '.join(ids)}")
    raise UsageError(f"no {word} '{name}'{did_you_mean(name, ids)}" if ids else f"there {_are(0, word)}")


def _are(number: int, word: str) -> str:
    return {0: f"are no {word}s yet", 1: f"is only one {word}"}.get(number, f"are {number} {word}s")
