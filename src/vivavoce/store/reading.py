"""Streams over the attempts of a run: page by page, each page one short look, so that no reader holds up the writer.

A page holds the attempts that follow the last one read; what is written meanwhile comes in a later page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Select, Table, select

from vivavoce.records.run import Attempt, AttemptKey, Outcome, ScoreRow
from vivavoce.records.score import State
from vivavoce.store.database import plain_errors
from vivavoce.store.decode import AnyRow, attempt_of, grades_of
from vivavoce.store.encode import escape
from vivavoce.store.schema import attempts, scores, turns

PAGE = 32
"""Whole conversations that are held at a time."""
KEY_PAGE = 2000
"""Attempts at a time where only keys and scores are read."""

_KEY = (attempts.c.id, attempts.c.sample_id, attempts.c.target, attempts.c.trial)

T = TypeVar("T")
Page = Sequence[AnyRow]
AnySelect: TypeAlias = "Select[*tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one run; `place` names the store in errors."""

    engine: Engine
    place: str
    run_id: str

    def keys(self) -> Iterator[AttemptKey]:
        """Yield the key of every attempt."""
        return self._stream(select(*_KEY), KEY_PAGE, lambda _, page: list(map(_key, page)))

    def attempts(self, sample_id: str | None) -> Iterator[Attempt]:
        """Yield attempts with their turns, in the order in which they were written."""

        def read(connection: Connection, page: Page) -> list[Attempt]:
            talks = self._turns(connection, page)
            return [attempt_of(row, talks.get(row.id, ())) for row in page]

        return self._stream(_whole(sample_id), PAGE, read)

    def outcomes(self, grading_id: str, sample_id: str | None) -> Iterator[Outcome]:
        """Yield attempts with what a grading says; one that it has not graded comes without grades."""

        def read(connection: Connection, page: Page) -> list[Outcome]:
            talks = self._turns(connection, page)
            said = _scores(connection, page, select(scores), scores.c.grading_id == grading_id)
            return [_outcome(attempt_of(row, talks.get(row.id, ())), said.get(row.id, ())) for row in page]

        return self._stream(_whole(sample_id), PAGE, read)

    def scores(self, grading_id: str) -> Iterator[ScoreRow]:
        """Yield the scores of whole conversations."""
        s = scores.c
        query = select(s.attempt_id, s.kind, s.name, s.state, s.value)

        def read(connection: Connection, page: Page) -> list[ScoreRow]:
            keys = {row.id: _key(row) for row in page}
            found = _scores(connection, page, query, s.grading_id == grading_id, s.turn.is_(None))
            return [
                ScoreRow(keys[number], row.kind, row.name, row.state, row.value)
                for number, rows in found.items()
                for row in rows
            ]

        return self._stream(select(*_KEY), KEY_PAGE, read)

    def turn_scores(self, grading_id: str, name: str) -> Iterator[tuple[AttemptKey, int, State, float | None]]:
        """Yield what one grader says of each turn."""
        s = scores.c
        query = select(s.attempt_id, s.turn, s.state, s.value)

        def read(connection: Connection, page: Page) -> list[tuple[AttemptKey, int, State, float | None]]:
            keys = {row.id: _key(row) for row in page}
            of_turns = (s.grading_id == grading_id, s.kind == "grade", s.name == name, s.turn.is_not(None))
            found = _scores(connection, page, query, *of_turns)
            return [(keys[number], row.turn, row.state, row.value) for number, rows in found.items() for row in rows]

        return self._stream(select(*_KEY), KEY_PAGE, read)

    def _stream(self, query: AnySelect, size: int, read: Callable[[Connection, Page], list[T]]) -> Iterator[T]:
        query = query.where(attempts.c.run_id == self.run_id).order_by(attempts.c.id).limit(size)
        after = -1
        while True:
            with plain_errors(self.place), self.engine.connect() as connection:
                page = connection.execute(query.where(attempts.c.id > after)).all()
                records = read(connection, page) if page else []
            yield from records
            if len(page) < size:
                return
            after = page[-1].id

    def _turns(self, connection: Connection, page: Page) -> dict[int, list[AnyRow]]:
        mine = select(turns).join(attempts).where(attempts.c.run_id == self.run_id, _within(turns, page))
        return _by_attempt(connection.execute(mine.order_by(turns.c.attempt_id, turns.c.idx)).all())


def _whole(sample_id: str | None) -> AnySelect:
    query = select(attempts)
    return query if sample_id is None else query.where(attempts.c.sample_id == escape(sample_id))


def _scores(
    connection: Connection, page: Page, query: AnySelect, *which: ColumnElement[bool]
) -> dict[int, list[AnyRow]]:
    found = query.where(*which, _within(scores, page)).order_by(scores.c.attempt_id, scores.c.id)
    return _by_attempt(connection.execute(found).all())


def _within(table: Table, page: Page) -> ColumnElement[bool]:
    return table.c.attempt_id.between(page[0].id, page[-1].id)


def _by_attempt(rows: Sequence[AnyRow]) -> dict[int, list[AnyRow]]:
    return {number: list(group) for number, group in groupby(rows, attrgetter("attempt_id"))}


def _key(row: AnyRow) -> AttemptKey:
    return AttemptKey(row.sample_id, row.target, row.trial)


def _outcome(attempt: Attempt, rows: Sequence[AnyRow]) -> Outcome:
    grades, reward = grades_of(rows)
    return Outcome(attempt=attempt, grades=grades, reward=reward)
