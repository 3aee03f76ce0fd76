"""The data for a comparison of graded runs: scenarios and scores in one query, and the texts of a few of them.

Whole runs are read, without messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, func, select

from vivavoce.records.run import Grading
from vivavoce.records.score import Failure, State
from vivavoce.store.browse.listing import title_of
from vivavoce.store.database.database import AnySelect, Database, any_of, tuples_of
from vivavoce.store.database.schema import attempts, scores
from vivavoce.store.runs.serialization import failure_of_text, measured_in

if TYPE_CHECKING:  # numpy takes a tenth of a second to import, which most commands do not need
    import numpy as np
    from numpy.typing import NDArray

AT_ONCE = 5000
"""Attempts in one query."""


class ScoreText(NamedTuple):
    """What a score says, as in `Score`; `turns` has at most the lowest of its turns."""

    turn: int | None
    state: State
    value: float | None
    reason: str | None
    failure: Failure | None
    turns: tuple[ScoreText, ...] | None = None


@dataclass(frozen=True, slots=True)
class GraderScores:
    """The scores of whole conversations by one grader, in the order of the attempts.

    `values` are NaN and `passes` False without a score; `unscored` has the states of those that have none, by their
    place. `measured` has the numbers of measurements by their place; these have no value.
    """

    values: NDArray[np.float64]
    passes: NDArray[np.bool_]
    unscored: Mapping[int, State]
    measured: Mapping[int, float] = field(default_factory=dict[int, float])


@dataclass(frozen=True, slots=True)
class ScenarioScores:
    """The attempts of a graded run in the order of its plan, as columns, and the scores of each grader.

    The graders are in the order of their scores for the first attempts, including `reward`. `numbers` are those of the
    attempts in the store, none where they come from elsewhere.
    """

    samples: Sequence[str]
    targets: Sequence[str]
    scenarios: Sequence[str]
    graders: Mapping[str, GraderScores]
    numbers: Sequence[int] = ()


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
        states = select(s.attempt_id, s.state, s.raw).where(*of_whole, s.value.is_(None))
        first = select(s.attempt_id, s.id).where(*of_whole).order_by(s.attempt_id).limit(1)
        firsts: dict[str, tuple[int, int]] = {}
        found: dict[str, GraderScores] = {}
        with self.database.connected() as connection:
            numbers, samples, targets, scenarios = _columns(connection, plan.order_by(a.position, a.id))
            places = _Places(numbers)
            for name in connection.execute(graders_of(grading)).scalars().all():
                scored = _columns(connection, values.where(s.name == name))
                unscored = _columns(connection, states.where(s.name == name))
                found[name] = places.scores(scored, unscored)
                earliest = connection.execute(first.where(s.name == name)).one()
                firsts[name] = earliest.attempt_id, earliest.id
        ordered = sorted(firsts, key=firsts.__getitem__)
        return ScenarioScores(samples, targets, scenarios, {name: found[name] for name in ordered}, numbers)

    def numbers(self, run_id: str, target: str, samples: Sequence[str]) -> list[tuple[int, str]]:
        """Return the numbers of the attempts of some samples, each with its sample, in the order of the plan."""
        a = attempts.c
        query = select(a.id, a.sample_id).where(a.run_id == run_id, a.target == target, a.sample_id.in_(samples))
        with self.database.connected() as connection:
            return [(number, sample) for number, sample in connection.execute(query.order_by(a.position, a.id))]

    def lowest_scores(self, grading: Grading, name: str, numbers: Sequence[int]) -> dict[int, ScoreText]:
        """Return the scores of a grader, or the rewards, of some attempts by their numbers."""
        s = scores.c
        query = select(s.attempt_id, s.id, s.turn, s.state, s.value, s.reason, s.failure)
        query = query.where(s.grading_id == grading.id, s.name == name)
        query = query.where(s.kind == ("reward" if name == "reward" else "grade"))
        found: dict[int, ScoreText] = {}
        with self.database.connected() as connection:
            for some in _parts(numbers):
                found |= _score_texts(tuples_of(connection, query.where(any_of(connection, s.attempt_id, some))))
        return found

    def titles(self, run_id: str, target: str, samples: Sequence[str]) -> dict[str, str]:
        """Return the titles of some samples, by their ids: the goal, or the beginning of the input, or the id."""
        a = attempts.c
        query = select(a.sample_id, a.sample).where(a.run_id == run_id, a.target == target, a.sample_id.in_(samples))
        with self.database.connected() as connection:
            rows = connection.execute(query).all()
        return {row.sample_id: title_of(json.loads(row.sample)) or row.sample_id for row in rows}


def graders_of(grading: Grading) -> AnySelect:
    """Return a query for the names of the graders with scores.

    It jumps from name to name in the index, so that its cost does not depend on the number of scores.
    """
    s = scores.alias().c
    names = select(func.min(s.name).label("name")).where(s.turn.is_(None)).cte("names", recursive=True)
    following = select(func.min(s.name)).where(s.turn.is_(None), s.name > names.c.name).scalar_subquery()
    names = names.union_all(select(following).where(names.c.name.is_not(None)))
    theirs = select(1).where(s.turn.is_(None), s.name == names.c.name, s.grading_id == grading.id).exists()
    return select(names.c.name).where(theirs)


def _columns(connection: Connection, query: AnySelect) -> Sequence[Sequence[Any]]:
    """Return the columns of a query."""
    rows = tuples_of(connection, query)
    return list(zip(*rows, strict=True)) or [()] * len(query.selected_columns)


class _Places:
    """The place of each attempt in the plan, by its number."""

    def __init__(self, numbers: Sequence[int]) -> None:
        import numpy as np

        given = np.array(numbers, dtype=np.int64)
        self._order = np.argsort(given)
        self._sorted = given[self._order]

    def of(self, numbers: Sequence[int]) -> NDArray[np.intp]:
        """Return the places of some attempts."""
        import numpy as np

        return self._order[np.searchsorted(self._sorted, np.array(numbers, dtype=np.int64))]

    def scores(self, scored: Sequence[Sequence[Any]], unscored: Sequence[Sequence[Any]]) -> GraderScores:
        """Return the scores of a grader, from the columns of those with a value and of those without one."""
        import numpy as np

        numbers, marks, passed = scored
        values, passes = np.full(len(self._order), np.nan), np.zeros(len(self._order), dtype=np.bool_)
        places = self.of(numbers)
        values[places] = marks
        passes[places] = passed
        others, states, raws = unscored
        without: dict[int, State] = {}
        measured: dict[int, float] = {}
        for place, state, raw in zip(self.of(others).tolist(), states, raws, strict=True):
            if (number := measured_in(state, None, raw)) is None:
                without[place] = state
            else:
                measured[place] = number
        return GraderScores(values, passes, without, measured)


def _score_texts(rows: Sequence[tuple[Any, ...]]) -> dict[int, ScoreText]:
    """Return what scores say by attempt, from the rows of whole conversations and of turns, in any order."""
    lowest: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        attempt, number, turn, _, value, *_ = row
        if turn is not None and value is not None:
            known = lowest.get(attempt)
            if known is None or (value, number) < (known[4], known[1]):
                lowest[attempt] = row
    return {
        row[0]: _score_text(row, (_score_text(lowest[row[0]]),) if row[0] in lowest else None)
        for row in rows
        if row[2] is None
    }


def _score_text(row: tuple[Any, ...], turns: tuple[ScoreText, ...] | None = None) -> ScoreText:
    _, _, turn, state, value, reason, failure = row
    return ScoreText(turn, state, value, reason, failure_of_text(failure), turns)


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE))
