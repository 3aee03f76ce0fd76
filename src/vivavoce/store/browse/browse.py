"""`Browse`: lists for people and pages of runs, of the samples of a graded run, of their scores and of their turns.

A page continues where the previous one ended, whatever was written in between, and costs the same at any depth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar, Unpack

from sqlalchemy import ColumnElement, Connection, func, or_, select, tuple_

from vivavoce.errors import NotFound, UsageError, did_you_mean
from vivavoce.lazy_names import lazy
from vivavoce.records.run import Grading, Run
from vivavoce.records.score import Score, State, shorten
from vivavoce.store.browse.filter import (
    NUMBERS,
    Compares,
    Condition,
    Has,
    RunFilter,
    Term,
    Within,
    beside,
    conditions,
    encode_cursor,
    ordering,
    parse_filter,
    read_place,
    run_conditions,
)
from vivavoce.store.browse.listing import (
    ErrorList,
    GradedTurn,
    Histogram,
    Kept,
    RunEntry,
    RunPage,
    SampleEntry,
    SamplePage,
    ScorePage,
    TurnPage,
    alike_errors,
    listed_score,
    run_entry,
    sample_entry,
)
from vivavoce.store.browse.scenarios import score_histograms, taken_histograms
from vivavoce.store.database.database import AnyRow, Database, on_postgresql
from vivavoce.store.database.schema import attempts, gradings, runs, sample_index, scores, turns
from vivavoce.store.runs.naming import keys_of, no_conversation
from vivavoce.store.runs.reading import all_dead_runs, with_current_status
from vivavoce.store.runs.rows import RANK, SampleStatus, runs_of, score_of, turn_of

T = TypeVar("T")

_PLACE: tuple[ColumnElement[Any], ...] = (attempts.c.position, attempts.c.id)

_ENTRY: tuple[ColumnElement[Any], ...] = tuple(
    runs.c[name]
    for name in (
        *("id", "suite", "status", "started_at", "finished_at", "version", "partial_of"),
        *("title", "tags", "options"),
    )
)
"""What the entry of a run has of its record."""


@dataclass(frozen=True, slots=True)
class Around:
    """The neighbours of an attempt in a list of `total` attempts; `number` is its place from 1, None outside it."""

    before: SampleEntry | None
    after: SampleEntry | None
    number: int | None
    total: int


@dataclass(frozen=True, slots=True)
class Browse:
    """Lists of what a store holds, a page at a time."""

    database: Database
    kept: Kept = field(default_factory=Kept)

    def runs(
        self, after: str | None = None, limit: int = 50, *, before: str | None = None, **which: Unpack[RunFilter]
    ) -> RunPage:
        """Return some runs, newest first; `which` says of which kind.

        A page is what comes `after` a cursor, or right `before` one.

        Raises:
            UsageError: a cursor is not one of this list.
        """
        r = runs.c
        query, place = select(*_ENTRY).limit(limit + 1), tuple_(r.started_at, r.id)
        dead = all_dead_runs(self.database) if which.get("status") in ("running", "interrupted") else ()
        query = query.where(*run_conditions(which, dead, postgresql=on_postgresql(self.database.engine)))
        if before is not None:
            query = query.where(place > read_place(before, float, str)).order_by(r.started_at, r.id)
        else:
            query = query.order_by(r.started_at.desc(), r.id.desc())
        if before is None and after is not None:
            query = query.where(place < read_place(after, float, str))
        with self.database.connected() as connection:
            found = connection.execute(query).all()
            page = found[:limit] if before is None else found[:limit][::-1]
            shown = _newest_gradings(connection, [row.id for row in page])
            remarks = _comments_of_runs(connection, [row.id for row in page])
        ends = [encode_cursor((row.started_at, row.id)) for row in (*page[:1], *page[-1:])]
        following, preceding = beside(ends, more=len(found) > limit, after=after, before=before)
        entries = self._entries(page, shown, remarks)
        return RunPage(runs=entries, next=following, previous=preceding)

    def named_runs(self, ids: Sequence[str]) -> list[RunEntry]:
        """Return the runs with these ids that exist, the newest first.

        Raises:
            StoreError: the store cannot be read.
        """
        r = runs.c
        with self.database.connected() as connection:
            found = connection.execute(
                select(*_ENTRY).where(r.id.in_(ids)).order_by(r.started_at.desc(), r.id.desc())
            ).all()
            shown = _newest_gradings(connection, [row.id for row in found])
            remarks = _comments_of_runs(connection, [row.id for row in found])
        return self._entries(found, shown, remarks)

    def runs_before(self, entries: Sequence[RunEntry], limit: int) -> dict[str, list[RunEntry]]:
        """Return for each suite of some runs the whole runs that started before all of them, newest first.

        Raises:
            StoreError: the store cannot be read.
        """
        r = runs.c
        query = select(*_ENTRY).where(r.partial_of.is_(None))
        query = query.order_by(r.started_at.desc(), r.id.desc()).limit(limit)
        oldest = {entry.suite: entry for entry in entries}
        with self.database.connected() as connection:
            found = {
                suite: connection.execute(
                    query.where(r.suite == suite, tuple_(r.started_at, r.id) < (entry.started_at, entry.id))
                ).all()
                for suite, entry in oldest.items()
            }
            shown = _newest_gradings(connection, [row.id for rows in found.values() for row in rows])
        return {suite: self._entries(rows, shown, {}) for suite, rows in found.items()}

    def parts_of(self, run_id: str) -> list[Run]:
        """Return the runs that repeat a part of a run or go on from its conversations, the oldest first."""
        query = select(runs).where(runs.c.partial_of == run_id).order_by(runs.c.started_at, runs.c.id)
        with self.database.connected() as connection:
            found = runs_of(connection.execute(query))
        return with_current_status(self.database, found)

    def held(self, run_id: str) -> int:
        """Return how many conversations of a run are stored."""
        query = select(func.count()).select_from(attempts).where(attempts.c.run_id == run_id)
        with self.database.connected() as connection:
            return connection.execute(query).scalar_one()

    def _entries(
        self, rows: Sequence[AnyRow], graded: Mapping[str, AnyRow], remarks: Mapping[str, int]
    ) -> list[RunEntry]:
        entries = [run_entry(row, graded.get(row.id), remarks.get(row.id, 0)) for row in rows]
        return with_current_status(self.database, entries)

    def suites(self) -> list[str]:
        """Return the names of the suites that runs are of, sorted."""
        with self.database.connected() as connection:
            return list(connection.execute(select(runs.c.suite).distinct().order_by(runs.c.suite)).scalars())

    def samples(
        self,
        grading_id: str,
        filter_terms: str | Sequence[Term] = (),
        *,
        sort: str = "position",
        after: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> SamplePage:
        """Return some attempts of a grading, each with its scores.

        `filter_terms` is a filter as text or as the result of `parse_filter`. `sort` is `position`, `worst` (errors,
        then the lowest score first), `seconds`, `turns`, `trial`, `tokens`, `cost` or the name of a grader; a leading
        `-` sorts in descending order. Attempts without such a number come last.

        A page is what comes `after` a cursor, or right `before` one.

        Raises:
            UsageError: there is no such grading, the filter cannot be read, or a cursor is not one of this list.
        """
        terms = self._terms(grading_id, filter_terms)
        with self.database.connected() as connection:
            within = _within(connection, grading_id)
            _check_graders(connection, within, terms)
            order = ordering(sort, within)
            chosen = select(sample_index, *order.extra).select_from(order.table).where(*conditions(terms, within))
            place = after if before is None else before
            way = order if before is None else replace(order, down=not order.down)
            if place is not None:
                chosen = chosen.where(way.beyond(read_place(place, *order.kinds)))
            chosen = chosen.order_by(*way.by).limit(limit + 1)
            key = ("samples", tuple(terms), sort, after, before, limit) if all(map(_lasts, terms)) else None
            found = self._answer(within, key, lambda: connection.execute(chosen).all())
            listed = found[:limit] if before is None else found[:limit][::-1]
            samples = _sample_entries(connection, listed, within)
        cursors = [encode_cursor([getattr(row, name) for name in order.names]) for row in (*listed[:1], *listed[-1:])]
        following, preceding = beside(cursors, more=len(found) > limit, after=after, before=before)
        return SamplePage(samples=samples, next=following, previous=preceding)

    def count_samples(self, grading_id: str, filter_terms: str | Sequence[Term] = ()) -> int:
        """Return how many attempts of a grading match a filter.

        Raises:
            UsageError: there is no such grading, or the filter cannot be read.
        """
        terms = self._terms(grading_id, filter_terms)
        with self.database.connected() as connection:
            within = _within(connection, grading_id)
            _check_graders(connection, within, terms)
            query = select(func.count()).select_from(sample_index).where(*conditions(terms, within))
            key = ("count", tuple(terms)) if all(map(_lasts, terms)) else None
            return self._answer(within, key, lambda: connection.execute(query).scalar_one())

    def compute(
        self,
        grading_id: str,
        filter_terms: str | Sequence[Term],
        key: tuple[Hashable, ...],
        compute: Callable[[Connection, Sequence[Condition], Within], T],
        *,
        grader: str | None = None,
    ) -> T:
        """Return what `compute` makes of the attempts of a grading that match a filter.

        It is given the conditions that hold for them. What it returns of a run that has ended is kept in memory under
        `key`, so nobody may change it. `grader` is checked to be one of the grading.

        Raises:
            UsageError: there is no such grading or grader, or the filter cannot be read.
        """
        terms = self._terms(grading_id, filter_terms)
        with self.database.connected() as connection:
            within = _within(connection, grading_id)
            _check_graders(connection, within, terms)
            _check_grader(connection, within, grader)
            lasting = (*key, tuple(terms)) if all(map(_lasts, terms)) else None
            return self._answer(within, lasting, lambda: compute(connection, conditions(terms, within), within))

    def histograms(self, grading_id: str, graders: Sequence[str]) -> list[Histogram]:
        """Return how the scores of some graders are distributed, and the time, tokens and cost of the conversations.

        Raises:
            StoreError: the store cannot be read.
        """

        def drawn() -> list[Histogram]:
            scored = score_histograms(connection, grading_id, graders)
            return [*scored, *taken_histograms(connection, grading_id)]

        with self.database.connected() as connection:
            key = ("histograms", *graders)
            return list(self._answer(_within(connection, grading_id), key, drawn))

    def states(self, grading_id: str) -> dict[SampleStatus, int]:
        """Return how many attempts of a grading are in each state, worst first, without the states that none is in.

        Raises:
            StoreError: the store cannot be read.
        """
        state = sample_index.c.state
        query = select(state, func.count().label("number")).where(sample_index.c.grading_id == grading_id)
        with self.database.connected() as connection:
            counted = query.group_by(state)
            rows = self._answer(_within(connection, grading_id), ("states",), lambda: connection.execute(counted).all())
        found = {row.state: row.number for row in rows}
        return {one: found[one] for one in RANK if one in found}

    def errors_alike(self, grading_id: str, limit: int = 50) -> ErrorList:
        """Return the errors of attempts by target and by what they say, up to `limit` groups, the most frequent first.

        Raises:
            StoreError: the store cannot be read.
        """
        d, a, s = sample_index.c, attempts.c, scores.c
        mine, number, first = d.grading_id == grading_id, func.count(), func.min(d.position)
        total = func.sum(number).over().label("total")
        query = select(d.target, d.cause, number.label("number"), first.label("first"), total)
        query = query.where(mine, d.cause.is_not(None))
        query = query.group_by(d.target, d.cause).order_by(number.desc(), first, func.min(d.attempt_id)).limit(limit)
        whole = (s.grading_id == grading_id, s.turn.is_(None), s.state == "error")
        held = select(d.target, d.cause, a.id, a.sample_id, a.trial, a.failure).join_from(
            sample_index, attempts, a.id == d.attempt_id
        )
        with self.database.connected() as connection:
            groups = connection.execute(query).all()
            places = d.position.in_([group.first for group in groups])
            ordered = held.where(mine, places, d.cause.is_not(None)).order_by(d.position.desc(), a.id.desc())
            firsts = {(one.target, one.cause): one for one in connection.execute(ordered)}
            scored = select(s.attempt_id, s.name, s.failure, s.reason).where(*whole)
            scored = scored.where(s.attempt_id.in_([one.id for one in firsts.values()])).order_by(s.id.desc())
            score_of_first = {row.attempt_id: row for row in connection.execute(scored)}
        found = [(group, firsts[group.target, group.cause]) for group in groups]
        listed = [alike_errors(one, first, score_of_first.get(first.id)) for one, first in found]
        more = int(groups[0].total) - sum(group.number for group in groups) if groups else 0
        return ErrorList(groups=listed, more=more)

    def around(self, grading_id: str, position: int, filter_terms: Sequence[Term], sort: str) -> Around:
        """Return what stands before and after an attempt in a list of attempts, and how many stand before it.

        The attempt, named by its position in the plan, need not match the filter itself; `sort` is as for `samples`.

        Raises:
            UsageError: there is no such grading.
            NotFound: the grading has no attempt with this position.
        """
        with self.database.connected() as connection:
            within = _within(connection, grading_id)
            order, all_of_it, wanted = ordering(sort, within), conditions((), within), conditions(filter_terms, within)
            here = sample_index.c.position == position
            listed = select(sample_index, *order.extra).select_from(order.table)
            found = connection.execute(listed.where(*all_of_it, here)).first()
            if found is None:
                raise NotFound("position", str(position), within=f"grading {grading_id}")
            values = [getattr(found, name) for name in order.names]
            back = replace(order, down=not order.down)
            ends = [
                connection.execute(listed.where(*wanted, way.beyond(values)).order_by(*way.by).limit(1)).all()
                for way in (back, order)
            ]
            counted = select(func.count()).select_from(order.table)
            preceding, inside, total = (
                connection.execute(counted.where(*wanted, *only)).scalar_one()
                for only in ((back.beyond(values),), (here,), ())
            )
            before, after = (next(iter(_sample_entries(connection, rows, within)), None) for rows in ends)
        return Around(before, after, preceding + 1 if inside else None, total)

    def scores(
        self,
        grading: Grading,
        *,
        grader: str | None = None,
        state: State | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> ScorePage:
        """Return some scores of a grading, in the order of the plan of its run.

        Raises:
            UsageError: `after` is not a cursor of this list.
        """
        a, s = attempts.c, scores.c
        query = select(a.sample_id, a.target, a.trial, a.position, a.id.label("attempt"), scores)
        with self.database.connected() as connection:
            query = query.join_from(attempts, scores, s.attempt_id == a.id)
            query = query.where(a.run_id == grading.run_id, s.grading_id == grading.id)
            if grader is not None:
                query = query.where(s.name == grader)
            if state is not None:
                query = query.where(s.state == state)
            if after is not None:
                position, attempt, last = read_place(after, int, int, int)
                # the first of the two is what an index finds
                query = query.where(tuple_(*_PLACE) >= (position, attempt), or_(a.id != attempt, s.id > last))
            found = connection.execute(query.order_by(*_PLACE, s.id).limit(limit + 1)).all()
        page = found[:limit]
        last = page[-1] if len(found) > limit else None
        following = None if last is None else encode_cursor((last.position, last.attempt, last.id))
        return ScorePage(scores=[listed_score(row) for row in page], next=following)

    def turns(
        self,
        grading: Grading,
        sample_id: str,
        trial: int,
        *,
        target: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> TurnPage:
        """Return some turns of a conversation of a graded run; by default for the first target.

        Raises:
            UsageError: there is no such conversation, or `after` is not a cursor of this list.
        """
        a, s, t = attempts.c, scores.c, turns.c
        (last,) = (-1,) if after is None else read_place(after, int)
        with self.database.connected() as connection:
            mine = select(a.id).where(a.run_id == grading.run_id, a.sample_id == sample_id)
            mine = mine.where(a.trial == trial)
            if target is not None:
                mine = mine.where(a.target == target)
            attempt = connection.execute(mine.order_by(a.position + 0, a.id).limit(1)).scalar()
            if attempt is None:
                there = keys_of(connection, grading.run_id, sample_id)
                raise no_conversation(grading.run_id, sample_id, target, trial, there)
            held = select(turns).where(t.attempt_id == attempt, t.idx > last).order_by(t.idx).limit(limit + 1)
            found = connection.execute(held).all()
            page = found[:limit]
            score_rows = select(scores).where(s.attempt_id == attempt, s.grading_id == grading.id, s.kind == "grade")
            rows = connection.execute(score_rows.where(s.turn.in_([row.idx for row in page])).order_by(s.id)).all()
        by_turn: dict[int, dict[str, Score]] = {row.idx: {} for row in page}
        for row in rows:
            by_turn[row.turn][row.name] = score_of(row)
        following = encode_cursor((page[-1].idx,)) if len(found) > limit else None
        return TurnPage(turns=[GradedTurn(turn=turn_of(row), scores=by_turn[row.idx]) for row in page], next=following)

    def _terms(self, grading_id: str, filter_terms: str | Sequence[Term]) -> Sequence[Term]:
        """Return the terms of a filter; of one that asks for words, the run is ready to be searched."""
        terms = parse_filter(filter_terms) if isinstance(filter_terms, str) else filter_terms
        if any(isinstance(term, Has) and term.field == "text" for term in terms):
            with self.database.connected() as connection:
                run_id = connection.execute(select(gradings.c.run_id).where(gradings.c.id == grading_id)).scalar()
            if run_id is not None:
                lazy("vivavoce.store.search.search:Searcher")(self.database).index_run(run_id)
        return terms

    def _answer(self, within: Within, key: tuple[Hashable, ...] | None, compute: Callable[[], T]) -> T:
        """Return what is kept of a set of scores under a key, None for what may change; computed where nothing is."""
        if key is None or within.ended is None:
            return compute()
        return self.kept.answer((within.grading_id, within.ended, *key), compute)


def _within(connection: Connection, grading_id: str) -> Within:
    g = gradings.c
    query = select(g.run_id, g.finished_at, runs.c.status).join(runs, runs.c.id == g.run_id)
    found = connection.execute(query.where(g.id == grading_id)).first()
    if found is None:
        raise NotFound("grading", grading_id)
    ended = None if found.status == "running" else found.finished_at
    return Within(found.run_id, grading_id, on_postgresql(connection), ended)


def _lasts(term: Term) -> bool:
    """Return whether what a term lets through stays so when the scores are complete: not what people leave."""
    return not (isinstance(term, Has) and term.field == "has")


def _check_graders(connection: Connection, within: Within, terms: Sequence[Term]) -> None:
    """Refuse a filter by a grader that this grading does not have; otherwise it would silently match nothing."""
    for name in dict.fromkeys(term.name for term in terms if isinstance(term, Compares) and term.grader):
        if (known := _others(connection, within, name)) is not None:
            raise UsageError(f"filter: no grader '{shorten(name, 80)}'{did_you_mean(name, known | {*NUMBERS})}")


def _check_grader(connection: Connection, within: Within, name: str | None) -> None:
    if name is not None and (known := _others(connection, within, name)) is not None:
        raise UsageError(f"no grader '{shorten(name, 80)}'{did_you_mean(name, known)}")


def _others(connection: Connection, within: Within, name: str) -> set[str] | None:
    """Return the graders of a grading, None where this one is among them."""
    here = scores.c.grading_id == within.grading_id
    found = select(scores.c.attempt_id).where(here, scores.c.name == name, scores.c.turn.is_(None)).limit(1)
    if connection.execute(found).first() is not None:
        return None
    prints = connection.execute(select(gradings.c.fingerprints).where(gradings.c.id == within.grading_id))
    known = {*json.loads(prints.scalar() or "{}")}  # where nothing is scored yet
    known |= {*connection.execute(select(scores.c.name).where(here).distinct()).scalars()}
    return None if name in known else known


def _newest_gradings(connection: Connection, ids: Sequence[str]) -> dict[str, AnyRow]:
    g = gradings.c
    of_runs = select(g.id, g.run_id).where(g.run_id.in_(ids))
    complete_last = of_runs.order_by(g.finished_at.is_not(None), g.created_at, g.id)
    newest = {row.run_id: row.id for row in connection.execute(complete_last)}
    query = select(g.id, g.run_id, g.verdict, g.summary, g.spec).where(g.id.in_(newest.values()))
    return {row.run_id: row for row in connection.execute(query)}


def _comments_of_runs(connection: Connection, ids: Sequence[str]) -> Mapping[str, int]:
    counts: Mapping[str, int] = lazy("vivavoce.store.comments:comments_of_runs")(connection, ids)
    return counts


def _sample_entries(connection: Connection, page: Sequence[AnyRow], within: Within) -> list[SampleEntry]:
    a, s = attempts.c, scores.c
    ids = [row.attempt_id for row in page]
    held = select(a.id, a.sample_id, a.target, a.trial, a.sample, a.started_at, a.failure).where(a.id.in_(ids))
    attempt_of = {row.id: row for row in connection.execute(held)}
    score_rows = connection.execute(
        select(s.attempt_id, s.kind, s.name, s.turn, s.state, s.value, s.raw, s.passed, s.reason, s.failure)
        .where(s.grading_id == within.grading_id, s.attempt_id.in_(ids))
        .order_by(s.attempt_id, s.id)
    )
    by_attempt = {number: list(rows) for number, rows in groupby(score_rows.all(), attrgetter("attempt_id"))}
    remarks: Mapping[int, int] = lazy("vivavoce.store.comments:comment_counts")(connection, ids)
    return [
        sample_entry(
            row, attempt_of[row.attempt_id], by_attempt.get(row.attempt_id, ()), remarks.get(row.attempt_id, 0)
        )
        for row in page
    ]
