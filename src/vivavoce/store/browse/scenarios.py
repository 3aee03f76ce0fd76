"""The data for a comparison of graded runs: scenarios and scores in one query, and the texts of a few of them.

Whole runs are read, without messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, func, select

from vivavoce.records.run import Grading
from vivavoce.records.score import Score, State
from vivavoce.store.browse.entries import title_of
from vivavoce.store.database.database import AnyRow, AnySelect, Database
from vivavoce.store.database.schema import attempts, scores
from vivavoce.store.runs.decode import failure_of_text

AT_ONCE = 1000
"""Rows in memory at a time, and samples in one query."""


Scored = tuple[float, bool]
"""A value, and whether the score passes."""


class Planned(NamedTuple):
    """The sample of an attempt, its target and its scenario."""

    sample_id: str
    target: str
    scenario: str


@dataclass(frozen=True, slots=True)
class ScenarioScores:
    """The attempts of a graded run by their numbers, in the order of its plan, and its scores by the same numbers.

    `graders` are in the order of their scores for the first attempts, including `reward`; for each, `scores` has the
    scores of whole conversations, and `unscored` the states of those without a score.
    """

    attempts: Mapping[int, Planned]
    graders: Sequence[str]
    scores: Mapping[str, Mapping[int, Scored]]
    unscored: Mapping[str, Mapping[int, State]]


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The data for comparisons of graded runs."""

    database: Database

    def scores(self, grading: Grading) -> ScenarioScores:
        """Return the scenario of every attempt of a graded run, and its scores."""
        a, s = attempts.c, scores.c
        plan = select(a.id, a.sample_id, a.target, a.scenario).where(a.run_id == grading.run_id)
        of_whole = s.grading_id == grading.id, s.turn.is_(None)
        values = select(s.attempt_id, s.value, s.passed).where(
            *of_whole, s.value.is_not(None)
        )  # an index holds all of it
        states = select(s.attempt_id, s.state).where(*of_whole, s.value.is_(None))
        first = select(s.attempt_id, s.id).where(*of_whole).order_by(s.attempt_id).limit(1)
        firsts: dict[str, tuple[int, int]] = {}
        scored: dict[str, dict[int, Scored]] = {}
        unscored: dict[str, dict[int, State]] = {}
        with self.database.connected() as connection:
            rows = _rows(connection, plan.order_by(a.position, a.id))
            planned = {row.id: Planned(row.sample_id, row.target, row.scenario) for row in rows}
            for name in connection.execute(_graders(grading)).scalars().all():
                ids, marks, passes = _columns(connection, values.where(s.name == name))
                scored[name] = dict(zip(ids, zip(marks, map(bool, passes), strict=True), strict=True))
                unscored[name] = {row.attempt_id: row.state for row in _rows(connection, states.where(s.name == name))}
                earliest = connection.execute(first.where(s.name == name)).one()
                firsts[name] = earliest.attempt_id, earliest.id
        return ScenarioScores(planned, sorted(firsts, key=firsts.__getitem__), scored, unscored)

    def lowest_scores(
        self, grading: Grading, target: str, name: str, samples: Sequence[str]
    ) -> Iterator[tuple[str, Score]]:
        """Yield the scores of a grader, or the rewards, of some samples, each with the id of its sample.

        Scores of one sample are adjacent, in the order of the plan. They have value, reason and failure, and only the
        lowest of their turns.
        """
        a, s = attempts.c, scores.c
        query = select(a.sample_id, a.id, s.turn, s.state, s.value, s.passed, s.reason, s.failure)
        query = query.join_from(attempts, scores, s.attempt_id == a.id)
        query = query.where(a.run_id == grading.run_id, a.target == target, s.grading_id == grading.id)
        query = query.where(s.name == name, s.kind == ("reward" if name == "reward" else "grade"))
        query = query.order_by(a.sample_id, a.position, a.id, s.turn.is_not(None), s.id)
        with self.database.connected() as connection:
            for some in _parts(samples):
                rows = connection.execute(query.where(a.sample_id.in_(some))).all()
                for _, mine in groupby(rows, attrgetter("id")):
                    whole, *turns = mine
                    yield whole.sample_id, _with_lowest_turn(name, whole, turns)

    def titles(self, run_id: str, target: str, samples: Sequence[str]) -> dict[str, str]:
        """Return the titles of some samples, by their ids: the goal, or the beginning of the input, or the id."""
        a = attempts.c
        query = select(a.sample_id, a.sample).where(a.run_id == run_id, a.target == target)
        with self.database.connected() as connection:
            rows = [row for some in _parts(samples) for row in connection.execute(query.where(a.sample_id.in_(some)))]
        return {row.sample_id: title_of(json.loads(row.sample)) or row.sample_id for row in rows}


def _graders(grading: Grading) -> AnySelect:
    """Return a query for the names of the graders with scores.

    It jumps from name to name in the index, so that its cost does not depend on the number of scores.
    """
    s = scores.alias().c
    names = select(func.min(s.name).label("name")).where(s.turn.is_(None)).cte("names", recursive=True)
    following = select(func.min(s.name)).where(s.turn.is_(None), s.name > names.c.name).scalar_subquery()
    names = names.union_all(select(following).where(names.c.name.is_not(None)))
    theirs = select(1).where(s.turn.is_(None), s.name == names.c.name, s.grading_id == grading.id).exists()
    return select(names.c.name).where(theirs)


def _rows(connection: Connection, query: AnySelect) -> Iterator[AnyRow]:
    """Yield rows in batches: holding all of them at once is slower."""
    for some in connection.execute(query).partitions(AT_ONCE):
        yield from some


def _columns(connection: Connection, query: AnySelect) -> Sequence[Sequence[Any]]:
    """Return the columns of a query for three numbers, as the database gives them: of many rows this is faster."""
    result = connection.execute(query)
    cursor = cast("Any", result).cursor
    rows: list[tuple[Any, ...]] = list(cursor.fetchall())
    result.close()
    return list(zip(*rows, strict=True)) or [(), (), ()]


def _with_lowest_turn(name: str, row: AnyRow, turns: Sequence[AnyRow]) -> Score:
    scored = [(turn.value, place) for place, turn in enumerate(turns) if turn.value is not None]
    lowest = (turns[min(scored)[1]],) if scored else ()
    return _score(name, row, tuple(_score(name, turn) for turn in lowest) or None)


def _score(name: str, row: AnyRow, turns: tuple[Score, ...] | None = None) -> Score:
    return Score(
        name=name,
        turn=row.turn,
        state=row.state,
        value=row.value,
        passed=None if row.passed is None else bool(row.passed),
        reason=row.reason,
        failure=failure_of_text(row.failure),
        turns=turns,
    )


def _parts(samples: Sequence[str]) -> Iterator[Sequence[str]]:
    return (samples[start : start + AT_ONCE] for start in range(0, len(samples), AT_ONCE))
