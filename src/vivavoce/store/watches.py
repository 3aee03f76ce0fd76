"""What watches production: how each watch is doing, what it saw in each hour, and the scores of a stretch of time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select

from vivavoce.records.run import WATCHED, AttemptKey, ScoreRow
from vivavoce.records.score import State
from vivavoce.store.database.database import Database, values_of
from vivavoce.store.database.schema import (
    attempts,
    gradings,
    json_text,
    runs,
    sample_index,
    scores,
    watch_hours,
    watches,
)
from vivavoce.store.runs.naming import first_id_at
from vivavoce.store.runs.rows import SampleStatus, measured_in

AT_ONCE = 2000
"""Rows in memory at a time."""
LONGEST_RUN = 25 * 3600.0
"""Seconds after its start in which a run of a watch takes conversations, and a bit more."""


class WatchRow(NamedTuple):
    """A watch: when it was last heard of, in seconds since 1970, and how it was doing."""

    name: str
    heard_at: float
    state: dict[str, Any]


class WatchedRun(NamedTuple):
    """A run of a watch, and the set of scores that it was judged with."""

    run: str
    grading: str


class ScoreCount(NamedTuple):
    """How many scores of a grader, or of the reward, are in a state; `passed` is None without a score."""

    kind: str
    name: str
    state: State
    passed: bool | None
    number: int


@dataclass(frozen=True, slots=True)
class Watches:
    """The watches of a store. A conversation belongs to the time at which its scores were stored."""

    database: Database

    def put(self, watch: WatchRow, hours: Mapping[int, Mapping[str, Any]]) -> None:
        """Keep how a watch is doing and what it saw in some hours, in place of what was known of these.

        Raises:
            StoreError: the store cannot be written.
        """
        w, h = watches.c, watch_hours.c
        with self.database.writing() as connection:
            connection.execute(delete(watches).where(w.name == watch.name))
            values = {"name": watch.name, "heard_at": watch.heard_at, "state": json_text(watch.state)}
            connection.execute(insert(watches).values(values))
            connection.execute(delete(watch_hours).where(h.watch == watch.name, h.hour.in_(list(hours))))
            rows = [{"watch": watch.name, "hour": hour, "figures": json_text(one)} for hour, one in hours.items()]
            if rows:
                connection.execute(insert(watch_hours), rows)

    def all(self) -> list[WatchRow]:
        """Return every watch, the one that was heard of last first."""
        query = select(watches).order_by(watches.c.heard_at.desc(), watches.c.name)
        with self.database.connected() as connection:
            return [WatchRow(row.name, row.heard_at, json.loads(row.state)) for row in connection.execute(query)]

    def hours(self, name: str, first: float, last: float) -> dict[int, dict[str, Any]]:
        """Return what a watch saw in each hour from `first` to before `last`, oldest first."""
        h = watch_hours.c
        query = select(h.hour, h.figures).where(h.watch == name, h.hour >= int(first), h.hour < int(last))
        with self.database.connected() as connection:
            return {row.hour: json.loads(row.figures) for row in connection.execute(query.order_by(h.hour))}

    def runs(self, name: str, since: float, until: float) -> list[WatchedRun]:
        """Return the runs of a watch that took conversations in a stretch of time, oldest first."""
        r, g = runs.c, gradings.c
        query = select(r.id, r.options).where(r.suite == name, r.started_at >= since - LONGEST_RUN)
        with self.database.connected() as connection:
            found = connection.execute(query.where(r.started_at < until).order_by(r.started_at)).all()
            mine = [row.id for row in found if json.loads(row.options).get("dataset") == WATCHED]
            sets = connection.execute(select(g.run_id, g.id).where(g.run_id.in_(mine)).order_by(g.created_at, g.id))
            first: dict[str, str] = {}
            for row in sets:
                first.setdefault(row.run_id, row.id)
        return [WatchedRun(one, first[one]) for one in mine if one in first]

    def judged_elsewhere(self, name: str, samples: Sequence[str], since: float) -> dict[str, str]:
        """Return which of some conversations another watch has judged since a time, and the name of that watch.

        A conversation that went on, such as `a~2`, counts as the one that it continues.
        """
        r, a = runs.c, attempts.c
        started = select(r.id, r.suite, r.options).where(r.suite != name, r.started_at >= since - LONGEST_RUN)
        identities = {sample.rpartition("~")[0] if _goes_on(sample) else sample for sample in samples}
        with self.database.connected() as connection:
            others = {
                row.id: row.suite
                for row in connection.execute(started)
                if json.loads(row.options).get("dataset") == WATCHED
            }
            query = select(a.sample_id, a.run_id).where(a.run_id.in_(list(others)), a.sample_id.in_(identities))
            return {row.sample_id: others[row.run_id] for row in connection.execute(query)} if others else {}

    def score_counts(self, grading_ids: Sequence[str], since: float, until: float) -> list[ScoreCount]:
        """Return how many scores of whole conversations were stored in a stretch of time, by grader and state."""
        s = scores.c
        by = (s.kind, s.name, s.state, s.passed)
        query = select(*by, func.count().label("number")).where(*_within(scores, grading_ids, since, until))
        with self.database.connected() as connection:
            rows = connection.execute(query.where(s.turn.is_(None)).group_by(*by).order_by(s.kind, s.name)).all()
        return [
            ScoreCount(row.kind, row.name, row.state, None if row.passed is None else bool(row.passed), row.number)
            for row in rows
        ]

    def status_counts(self, grading_ids: Sequence[str], since: float, until: float) -> dict[SampleStatus, int]:
        """Return how many conversations were judged in a stretch of time, by what their scores amount to."""
        i = sample_index.c
        query = select(i.state, func.count().label("number")).where(*_within(sample_index, grading_ids, since, until))
        with self.database.connected() as connection:
            return {row.state: row.number for row in connection.execute(query.group_by(i.state))}

    def scores(self, grading_ids: Sequence[str], since: float, until: float) -> Iterator[ScoreRow]:
        """Yield the scores of whole conversations that were stored in a stretch of time."""
        a, s = attempts.c, scores.c
        query = select(a.sample_id, a.target, a.trial, s.kind, s.name, s.state, s.value, s.passed, s.raw)
        query = query.join_from(scores, attempts, a.id == s.attempt_id)
        query = query.where(*_within(scores, grading_ids, since, until), s.turn.is_(None))
        with self.database.connected() as connection:
            for some in connection.execute(query.order_by(s.attempt_id, s.id)).partitions(AT_ONCE):
                for sample, target, trial, kind, name, state, value, passed, raw in some:
                    did_pass = None if passed is None else bool(passed)
                    key, measured = AttemptKey(sample, target, trial), measured_in(state, value, raw)
                    yield ScoreRow(key, kind, name, state, value, did_pass, measured=measured)


def _goes_on(sample: str) -> bool:
    return sample.rpartition("~")[2].isdecimal() and "~" in sample


def copy_watches(source: Connection, target: Connection) -> None:
    """Copy what the other store does not know of watches and of their hours."""
    for table, keys in ((watches, ("name",)), (watch_hours, ("watch", "hour"))):
        columns = [table.c[key] for key in keys]
        there = {tuple(row) for row in target.execute(select(*columns))}
        rows = [values_of(row) for row in source.execute(select(table))]
        if new := [row for row in rows if tuple(row[key] for key in keys) not in there]:
            target.execute(insert(table), new)


def _within(table: Table, grading_ids: Sequence[str], since: float, until: float) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for rows of attempts that were stored in a stretch of time, which their ids tell."""
    number = table.c.attempt_id
    return number >= first_id_at(since), number < first_id_at(until), table.c.grading_id.in_(list(grading_ids))
