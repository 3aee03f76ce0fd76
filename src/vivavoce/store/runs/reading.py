"""What the store has of a run: its status, its failures, its conversations, and its scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, case, exists, false, func, or_, select, tuple_

from vivavoce.records.run import (
    Attempt,
    AttemptKey,
    ErrorRow,
    FailureRow,
    Outcome,
    Run,
    ScoreRow,
    ToolError,
    stored_breaches,
)
from vivavoce.records.score import BREACH, CANCELLED, UNSUPPORTED, Finding, State, Usage
from vivavoce.records.trajectory import error_of, tool_results
from vivavoce.store.browse.listing import RunEntry
from vivavoce.store.database.database import AnyRow, AnySelect, Database, any_of, plain_errors, tuples_of
from vivavoce.store.database.schema import attempts, runs, sample_index, scores, turns
from vivavoce.store.runs.claim import held
from vivavoce.store.runs.rows import (
    AttemptCells,
    Entry,
    ScoreCells,
    TurnCells,
    attempt_of,
    cells_of,
    drawn_of,
    failure_of_text,
    measured_in,
    scores_of,
    turn_of,
    usage_of_text,
)

R = TypeVar("R", Run, RunEntry)


def with_current_status(database: Database, records: Sequence[R]) -> list[R]:
    """Return runs as they are now: those that no process works on any more are interrupted.

    Raises:
        StoreError: the store cannot be read.
    """
    dead = dead_runs(database, [record.id for record in records if record.status == "running"])
    return [record.model_copy(update={"status": "interrupted"}) if record.id in dead else record for record in records]


def dead_runs(database: Database, run_ids: Iterable[str]) -> set[str]:
    """Return which runs are recorded as running although no process works on them.

    The record is read again after the claim, because a run may end in between.

    Raises:
        StoreError: the store cannot be read.
    """
    free = [run_id for run_id in run_ids if not held(database, run_id)]
    if not free:
        return set()
    query = select(runs.c.id).where(runs.c.id.in_(free), runs.c.status == "running")
    with plain_errors(database.place), database.engine.connect() as connection:
        return set(connection.execute(query).scalars())


def all_dead_runs(database: Database) -> set[str]:
    """Return every run that is recorded as running although no process works on it.

    Raises:
        StoreError: the store cannot be read.
    """
    with database.connected() as connection:
        running = connection.execute(select(runs.c.id).where(runs.c.status == "running")).scalars().all()
    return dead_runs(database, running)


PAGE = 32
"""Whole conversations in memory at a time."""
KEY_PAGE = 2000
"""Attempts at a time where only keys and scores are read."""
SAMPLES_AT_ONCE = 500
"""Samples that one query asks for."""

_ORDER = (attempts.c.position, attempts.c.id)
_KEY = (*_ORDER, attempts.c.sample_id, attempts.c.target, attempts.c.trial)

T = TypeVar("T")
Page = Sequence[AnyRow]
Order = tuple[ColumnElement[int], ColumnElement[int]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one run."""

    database: Database
    run_id: str

    def keys(self) -> Iterator[AttemptKey]:
        """Yield the key of every attempt."""
        return self._stream(select(*_KEY), KEY_PAGE, lambda _, page: list(map(_key, page)))

    def stored(self, samples: Sequence[str]) -> set[str]:
        """Return which of some samples have an attempt."""
        found: set[str] = set()
        a = attempts.c
        with self.database.connected() as connection:
            for at in range(0, len(samples), SAMPLES_AT_ONCE):
                some = list(samples[at : at + SAMPLES_AT_ONCE])
                rows = connection.execute(select(a.sample_id).where(a.run_id == self.run_id, a.sample_id.in_(some)))
                found.update(rows.scalars())
        return found

    def cancelled(self) -> Iterator[AttemptKey]:
        """Yield the key of every attempt whose conversation was cancelled."""

        def read_page(_: Connection, page: Page) -> list[AttemptKey]:
            found = [(_key(row), failure_of_text(row.failure)) for row in page]
            return [key for key, failure in found if failure is not None and failure.kind == CANCELLED]

        return self._stream(select(*_KEY, attempts.c.failure), KEY_PAGE, read_page)

    def entries(self) -> Iterator[Entry]:
        """Yield attempts as they were written, with the scores of every grading."""

        def read_page(connection: Connection, page: Page) -> list[Entry]:
            talks = _turns(connection, page)
            score_rows = _scores(connection, page, select(scores))
            return [_entry(row, talks.get(row.id, ()), score_rows.get(row.id, ())) for row in page]

        return self._whole(None, read_page)

    def attempts(self, sample_id: str | None) -> Iterator[Attempt]:
        """Yield attempts with their turns."""

        def read_page(connection: Connection, page: Page) -> list[Attempt]:
            talks = _turns(connection, page)
            return [attempt_of(row, talks.get(row.id, ())) for row in page]

        return self._whole(sample_id, read_page)

    def outcomes(self, grading_id: str, sample_id: str | None) -> Iterator[Outcome]:
        """Yield attempts with the grades of a grading; an ungraded attempt has none."""

        def read_page(connection: Connection, page: Page) -> list[Outcome]:
            talks = _turns(connection, page)
            score_rows = _scores(connection, page, select(scores), scores.c.grading_id == grading_id)
            return [_outcome(attempt_of(row, talks.get(row.id, ())), score_rows.get(row.id, ())) for row in page]

        return self._whole(sample_id, read_page)

    def scores(self, grading_id: str) -> Iterator[ScoreRow]:
        """Yield the scores of whole conversations."""
        s = scores.c
        failure = case((s.state == "error", s.failure))
        unverified = case((s.state == "scored", s.extra.like(f'%"{UNSUPPORTED}":%')), else_=false())
        breaches = case((s.findings.contains(f'"{BREACH}"'), s.findings))
        raw = case((s.value.is_(None), s.raw))
        query = select(s.attempt_id, s.kind, s.name, s.state, s.value, s.passed, failure, unverified, breaches, raw)
        query = query.where(s.grading_id == grading_id, s.turn.is_(None)).order_by(s.attempt_id, s.id)

        def read_page(connection: Connection, page: Page) -> list[ScoreRow]:
            keys = dict(_keys(page))
            drawn = {row.id: drawn_of(row.stratum, row.probability) for row in page if row.stratum is not None}
            found: dict[int, list[ScoreRow]] = {number: [] for number in keys}
            rows = tuples_of(connection, query.where(_within(connection, scores, page)))
            for number, kind, name, state, value, passed, text, doubtful, findings, measured in rows:
                did_pass = None if passed is None else bool(passed)
                of_tester = text is not None and by_tester(text)
                kinds = stored_breaches(findings) if findings is not None and state == "scored" else ()
                how = (did_pass, of_tester, drawn.get(number), bool(doubtful), kinds)
                how = (*how, None if measured is None else measured_in(state, value, measured))
                found[number].append(ScoreRow(keys[number], kind, name, state, value, *how))
            return list(chain.from_iterable(found.values()))

        return self._stream(select(*_KEY, attempts.c.stratum, attempts.c.probability), KEY_PAGE, read_page)

    def errors(self, grading_id: str) -> Iterator[ErrorRow]:
        """Yield the errors of attempts: the failure of the conversation, or of the first grader with one."""
        s = scores.c
        query = select(s.attempt_id, s.name, s.failure, s.reason)

        def read_page(connection: Connection, page: Page) -> list[ErrorRow]:
            of_whole = (s.grading_id == grading_id, s.turn.is_(None), s.state == "error")
            found = _scores(connection, page, query, *of_whole)
            return [_error(row, found.get(row.id, ())) for row in page if row.failure is not None or row.id in found]

        return self._stream(select(*_KEY, attempts.c.failure), KEY_PAGE, read_page)

    def usage(self) -> Iterator[tuple[str, Usage]]:
        """Yield the target of each attempt where that tells what it used, and what it used."""

        def read_page(_: Connection, page: Page) -> list[tuple[str, Usage]]:
            found = [(row.target, usage_of_text(row.usage)) for row in page]
            return [(target, used) for target, used in found if used is not None]

        return self._stream(select(*_KEY, attempts.c.usage), KEY_PAGE, read_page)

    def by_page(self, read_page: Callable[[Connection, Page], list[T]]) -> Iterator[T]:
        """Yield what a function reads of each page of attempts, whose rows have a key and a failure."""
        return self._stream(select(*_KEY, attempts.c.failure), KEY_PAGE, read_page)

    def failed_samples(self, grading_id: str) -> list[str]:
        """Return the ids of the samples with an attempt that failed or has an error."""
        a, i = attempts.c, sample_index.c
        query = select(a.sample_id).join(sample_index, i.attempt_id == a.id)
        query = query.where(i.grading_id == grading_id, i.state.in_(("error", "fail"))).order_by(i.position)
        with self.database.connected() as connection:
            return list(dict.fromkeys(connection.execute(query).scalars()))

    def error_count(self, grading_id: str) -> int:
        """Return how many attempts `errors` yields."""
        a, s = attempts.c, scores.c
        broken = exists().where(s.attempt_id == a.id, s.grading_id == grading_id, s.turn.is_(None), s.state == "error")
        query = select(func.count()).where(a.run_id == self.run_id, or_(a.failure.is_not(None), broken))
        with self.database.connected() as connection:
            return connection.execute(query).scalar_one()

    def turn_scores(self, grading_id: str, name: str) -> Iterator[tuple[AttemptKey, int, State, float | None]]:
        """Yield the scores of one grader for each turn."""
        s = scores.c
        query = select(s.attempt_id, s.turn, s.state, s.value)

        def read_page(connection: Connection, page: Page) -> list[tuple[AttemptKey, int, State, float | None]]:
            of_turns = (s.grading_id == grading_id, s.kind == "grade", s.name == name, s.turn.is_not(None))
            found = _scores(connection, page, query, *of_turns)
            return [
                (key, row.turn, row.state, row.value) for number, key in _keys(page) for row in found.get(number, ())
            ]

        return self._stream(select(*_KEY), KEY_PAGE, read_page)

    def _whole(self, sample_id: str | None, read_page: Callable[[Connection, Page], list[T]]) -> Iterator[T]:
        if sample_id is None:
            return self._stream(select(attempts), PAGE, read_page)
        mine = select(attempts).where(attempts.c.sample_id == sample_id)
        unindexed = (_ORDER[0] + 0, _ORDER[1])  # or SQLite walks through the whole run in its order to find the sample
        return self._stream(mine, PAGE, read_page, unindexed)

    def _stream(
        self, query: AnySelect, size: int, read_page: Callable[[Connection, Page], list[T]], order: Order = _ORDER
    ) -> Iterator[T]:
        query = query.where(attempts.c.run_id == self.run_id).order_by(*order).limit(size)
        after = (-1, -1)
        while True:
            with self.database.connected() as connection:
                page = connection.execute(query.where(tuple_(*order) > after)).all()
                records = read_page(connection, page) if page else []
            yield from records
            if len(page) < size:
                return
            after = (page[-1].position, page[-1].id)


def _turns(connection: Connection, page: Page) -> dict[int, list[AnyRow]]:
    mine = select(turns).where(_within(connection, turns, page)).order_by(turns.c.attempt_id, turns.c.idx)
    return _by_attempt(connection.execute(mine).all())


def _scores(
    connection: Connection, page: Page, query: AnySelect, *which: ColumnElement[bool]
) -> dict[int, list[AnyRow]]:
    found = query.where(*which, _within(connection, scores, page)).order_by(scores.c.attempt_id, scores.c.id)
    return _by_attempt(connection.execute(found).all())


def _within(connection: Connection, table: Table, page: Page) -> ColumnElement[bool]:
    return any_of(connection, table.c.attempt_id, [row.id for row in page])


def _by_attempt(rows: Sequence[AnyRow]) -> dict[int, list[AnyRow]]:
    return {number: list(group) for number, group in groupby(rows, attrgetter("attempt_id"))}


def _keys(page: Page) -> list[tuple[int, AttemptKey]]:
    return [(row.id, _key(row)) for row in page]


def _key(row: AnyRow) -> AttemptKey:
    return AttemptKey(row.sample_id, row.target, row.trial)


def _entry(attempt: AnyRow, talk: Sequence[AnyRow], score_rows: Sequence[AnyRow]) -> Entry:
    (row,) = cells_of(AttemptCells, [attempt])
    return Entry(
        key=_key(attempt), attempt=row, turns=cells_of(TurnCells, talk), scores=cells_of(ScoreCells, score_rows)
    )


def _outcome(attempt: Attempt, rows: Sequence[AnyRow]) -> Outcome:
    scores, reward = scores_of(rows)
    return Outcome(attempt=attempt, scores=scores, reward=reward)


def _error(attempt: AnyRow, rows: Sequence[AnyRow]) -> ErrorRow:
    if attempt.failure is not None:
        return ErrorRow(_key(attempt), None, failure_of_text(attempt.failure), None)
    first = rows[0]
    return ErrorRow(_key(attempt), first.name, failure_of_text(first.failure), first.reason)


def by_tester(failure: str | None) -> bool:
    """Return whether the failure of a score, as JSON text, is an error of the tester that led the conversation."""
    found = None if failure is None else failure_of_text(failure)
    return found is not None and found.blame == "tester"


AT_ONCE = 500
"""Conversations whose turns are read at a time."""


def failing(reader: Reader, grading_id: str) -> Iterator[FailureRow]:
    """Yield the errors and the scores that did not pass, one conversation after the other."""
    s = scores.c
    columns = (s.attempt_id, s.name, s.turn, s.state, s.reason, s.findings, s.failure)
    bad = or_(s.state == "error", s.passed == 0)
    query = select(*columns).where(s.grading_id == grading_id, s.kind == "grade", bad)
    query = query.order_by(s.attempt_id, s.id)

    def read_page(connection: Connection, page: Page) -> list[FailureRow]:
        numbers = [row.id for row in page]
        rows = connection.execute(query.where(s.attempt_id.in_(numbers))).all()
        by_attempt = {number: list(group) for number, group in groupby(rows, attrgetter("attempt_id"))}
        tools = _tool_errors(connection, list(by_attempt))
        found: list[FailureRow] = []
        for one in page:
            key = AttemptKey(one.sample_id, one.target, one.trial)
            if (failure := failure_of_text(one.failure)) is not None:
                found.append(FailureRow(key, None, None, failure.message, failure=failure))
            else:
                found += _of_graders(key, by_attempt.get(one.id, ()), tools.get(one.id, ()))
        return found

    return reader.by_page(read_page)


def _of_graders(key: AttemptKey, rows: Sequence[AnyRow], tools: Sequence[ToolError]) -> Iterator[FailureRow]:
    by_turn = {row.name for row in rows if row.turn is not None}
    for row in rows:
        if row.turn is None and row.name in by_turn:
            continue
        errors = tuple(tool for tool in tools if row.turn in (None, tool.turn))
        failure = failure_of_text(row.failure) if row.state == "error" else None
        listed: list[dict[str, Any]] = json.loads(row.findings or "[]")
        findings = tuple(Finding.model_validate(one) for one in listed if one.get("state") == "fail")
        yield FailureRow(key, row.name, row.turn, row.reason or "", findings, failure, errors)


def _tool_errors(connection: Connection, numbers: Sequence[int]) -> Mapping[int, list[ToolError]]:
    """Return the errors that tools returned, by conversation."""
    found: dict[int, list[ToolError]] = {}
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        query = select(turns).where(turns.c.attempt_id.in_(some)).order_by(turns.c.attempt_id, turns.c.idx)
        for row in connection.execute(query):
            if '"tool_call' in row.messages:
                found.setdefault(row.attempt_id, []).extend(_errors_of(row))
    return found


def _errors_of(row: AnyRow) -> Iterator[ToolError]:
    for call, result in tool_results(turn_of(row).messages):
        if result is not None and (error := error_of(result)) is not None:
            yield ToolError(row.idx, call.function.name, error)
