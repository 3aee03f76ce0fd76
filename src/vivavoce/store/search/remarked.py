"""The comments that fit a query: they are few and change, so they are read and not indexed."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, select

from vivavoce.store.database.database import AnyRow
from vivavoce.store.database.schema import attempts, comments
from vivavoce.store.search.query import Query
from vivavoce.store.search.words import has_all, has_any

STEP, MOST_READ = 500, 2000
"""Comments that are read at a time, and at most for one page."""


class Remarked(NamedTuple):
    """Some comments, the newest first; the search goes on before the number `next`, None where it is at its end."""

    rows: list[AnyRow]
    next: int | None


def remarked(
    connection: Connection, query: Query, runs: Collection[str] | None, limit: int, before: int | None
) -> Remarked:
    """Return comments with the words of a query, of some runs or of all; only those `before` a number, if there is one.

    A query about scores or about who spoke finds no comment.
    """
    if not query.is_of_runs:
        return Remarked([], None)
    c, a = comments.c, attempts.c
    page = select(c.id, c.turn, c.author, c.text, a.run_id, a.sample_id, a.target, a.trial)
    page = page.join(attempts, a.id == c.attempt_id).order_by(c.id.desc()).limit(STEP)
    targets = {name.casefold() for name in query.unwanted("target")}
    among = None if runs is None else set(runs)
    found: list[AnyRow] = []
    read = 0
    while True:
        rows = connection.execute(page if before is None else page.where(c.id < before)).all()
        for row in rows:
            if (among is not None and row.run_id not in among) or row.target.casefold() in targets:
                continue
            if has_all([row.text], query.words) and not has_any([row.text], query.excluded):
                if len(found) == limit:
                    return Remarked(found, found[-1].id)
                found.append(row)
        if len(rows) < STEP:
            return Remarked(found, None)
        before, read = rows[-1].id, read + len(rows)
        if read >= MOST_READ:
            return Remarked(found, before)
