"""The whole runs of a suite in order of time, each with the summary of its newest scores; no single score is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select, tuple_

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.store.browse.filter import encode_cursor, read_place
from vivavoce.store.database.database import AnyRow, Database, UnreadableRow
from vivavoce.store.database.schema import gradings, runs
from vivavoce.store.runs.reading import with_current_status
from vivavoce.store.runs.rows import grading_of, runs_of

OFFERED = 20
"""Suites that an error considers."""

_WHOLE = runs.c.partial_of.is_(None)
"""A partial run is not a point of a series."""


class Graded(NamedTuple):
    """A run with its newest complete grading, or with the newest if none is complete."""

    run: Run
    grading: Grading | None


class Series(NamedTuple):
    """Some consecutive runs of a suite, oldest first.

    `before` is the run before them and `after` the id of the run after them, None if there is none.
    """

    runs: list[Graded]
    before: Graded | None
    after: str | None


class Recent(NamedTuple):
    """A suite: how many runs it has, and the newest of them, oldest first."""

    suite: str
    total: int
    runs: list[Graded]


@dataclass(frozen=True, slots=True)
class AllSeries:
    """The runs of each suite in order of time, with their newest scores."""

    database: Database

    def of(self, suite: str, *, first: str | None = None, last: str | None = None, limit: int = 60) -> Series:
        """Return at most `limit` runs of a suite: the newest, or those from `first` on, or those up to `last`.

        With both, the newest of those from `first` to `last`.

        Raises:
            UsageError: the suite has no run, or `first` or `last` is not the id of one of them.
        """
        r = runs.c
        of_suite = select(runs).where(r.suite == suite, _WHOLE)
        newest_first = of_suite.order_by(r.started_at.desc(), r.id.desc())
        oldest_first = of_suite.order_by(r.started_at, r.id)
        place = tuple_(r.started_at, r.id)
        with self.database.connected() as connection:
            ends = [None if one is None else _place_of(connection, suite, one) for one in (first, last)]
            if ends[0] is not None and ends[1] is None:
                found = connection.execute(oldest_first.where(place >= ends[0]).limit(limit)).all()
            else:
                query = newest_first if ends[1] is None else newest_first.where(place <= ends[1])
                chosen = query if ends[0] is None else query.where(place >= ends[0])
                found = connection.execute(chosen.limit(limit)).all()[::-1]
            if not found:
                raise _missing(connection, suite) if not any(ends) else UsageError(f"'{first}' started after '{last}'")
            one, other = ((row.started_at, row.id) for row in (found[0], found[-1]))
            before = connection.execute(newest_first.where(place < one).limit(1)).all()
            after = connection.execute(oldest_first.with_only_columns(r.id).where(place > other).limit(1)).scalar()
            graded = self._graded(connection, [*before, *found])
        return Series(graded[len(before) :], graded[0] if before else None, after)

    def recent(self, after: str | None = None, limit: int = 20, *, length: int = 12) -> tuple[list[Recent], str | None]:
        """Return some suites with their newest runs, at most `length` of each, and the next cursor.

        The suite that ran last comes first.

        Raises:
            UsageError: `after` is not a place of this list.
        """
        r = runs.c
        newest = func.max(r.started_at)
        suites = select(r.suite, newest.label("newest"), func.count().label("total")).where(_WHOLE).group_by(r.suite)
        suites = suites.order_by(newest.desc(), r.suite.desc())
        if after is not None:
            started_at, last = read_place(after, float, str)
            suites = suites.having(tuple_(newest, r.suite) < tuple_(started_at, last))
        with self.database.connected() as connection:
            found = connection.execute(suites.limit(limit + 1)).all()
            page = found[:limit]
            graded = self._graded(connection, connection.execute(_newest([row.suite for row in page], length)).all())
        following = encode_cursor((page[-1].newest, page[-1].suite)) if len(found) > limit else None
        return [
            Recent(row.suite, row.total, [one for one in graded if one.run.suite == row.suite]) for row in page
        ], following

    def graded_runs(self, ids: Sequence[str]) -> list[Graded]:
        """Return some runs, each with its newest scores, in the order of the ids; deleted runs are left out."""
        with self.database.connected() as connection:
            rows = connection.execute(select(runs).where(runs.c.id.in_(ids))).all()
            found = {one.run.id: one for one in self._graded(connection, rows)}
        return [found[one] for one in ids if one in found]

    def _graded(self, connection: Connection, rows: Sequence[AnyRow]) -> list[Graded]:
        g = gradings.c
        query = select(gradings).where(g.run_id.in_([row.id for row in rows]))
        complete_last = query.order_by(g.finished_at.is_not(None), g.created_at, g.id)
        newest = {row.run_id: row for row in connection.execute(complete_last)}
        parse = cache(json.loads)  # runs of a suite mostly share their texts
        records = with_current_status(self.database, runs_of(rows, parse))
        graded: list[Graded] = []
        for run in records:
            with suppress(UnreadableRow):  # lists of runs show it as unreadable
                graded.append(Graded(run, grading_of(scores, parse) if (scores := newest.get(run.id)) else None))
        return graded


def _newest(suites: Sequence[str], length: int) -> Select[Any]:
    r = runs.c
    rank = func.row_number().over(partition_by=r.suite, order_by=(r.started_at.desc(), r.id.desc()))
    ranked = select(r.id, rank.label("rank")).where(r.suite.in_(suites), _WHOLE).subquery()
    chosen = select(ranked.c.id).where(ranked.c.rank <= length)
    return select(runs).where(r.id.in_(chosen)).order_by(r.started_at, r.id)


def _place_of(connection: Connection, suite: str, run: str) -> tuple[float, str]:
    r = runs.c
    query = select(r.started_at, r.id).where(r.id == run, r.suite == suite, _WHOLE)
    row = connection.execute(query).first()
    if row is None:
        raise NotFound("run", run, within=f"suite '{suite}'")
    return row.started_at, row.id


def _missing(connection: Connection, suite: str) -> NotFound:
    newest = func.max(runs.c.started_at)
    query = select(runs.c.suite).group_by(runs.c.suite).order_by(newest.desc()).limit(OFFERED)
    known = list(connection.execute(query).scalars())
    return NotFound("suite", suite, known=known)
