"""Lists for people and pages: the runs of a store, and the attempts of a graded run, a page at a time.

A page goes on where the one before it ended, whatever was written meanwhile, and costs the same however far in it is.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import JSON, ColumnElement, Connection, cast, func, or_, select, tuple_

from vivavoce.errors import NotFound, UsageError, did_you_mean
from vivavoce.records.failure import shorten
from vivavoce.records.run import Status
from vivavoce.store.browse.conditions import Within, conditions, ordering
from vivavoce.store.browse.filter import NUMBERS, Compares, Has, Term, parse_filter
from vivavoce.store.browse.keyset import place_after, read_place
from vivavoce.store.browse.listing import Headline, RunEntry, RunPage, SampleEntry, SamplePage, ScoreEntry, TurnScore
from vivavoce.store.database.database import on_postgresql
from vivavoce.store.database.schema import attempts, gradings, runs, scores, standings
from vivavoce.store.runs.decode import AnyRow, failure_of_text
from vivavoce.store.runs.encode import escape, escape_nul
from vivavoce.store.store import Store

TITLE = 120
"""Characters of a title, and of a reason three times as many."""


def list_runs(
    store: Store,
    after: str | None = None,
    limit: int = 50,
    *,
    suite: str | None = None,
    status: Status | None = None,
    text: str | None = None,
) -> RunPage:
    """Return some runs, the newest first; `text` is a part of the id or of the name of the suite.

    Raises:
        UsageError: `after` is no place of this list.
    """
    r = runs.c
    query = select(r.id, r.suite, r.status, r.started_at, r.finished_at, r.version)
    query = query.order_by(r.started_at.desc(), r.id.desc()).limit(limit + 1)
    if after is not None:
        started_at, last = read_place(after, float, str)
        query = query.where(tuple_(r.started_at, r.id) < (started_at, _plain(last)))
    if suite is not None:
        query = query.where(r.suite == _plain(suite))
    if status is not None:
        query = query.where(r.status == status)
    if text:
        part = _plain(text).lower()
        query = query.where(or_(*(func.lower(c).contains(part, autoescape=True) for c in (r.id, r.suite))))
    with store.connected() as connection:
        found = connection.execute(query).all()
        page = found[:limit]
        shown = _newest_gradings(connection, [row.id for row in page])
    following = place_after((page[-1].started_at, page[-1].id)) if len(found) > limit else None
    return RunPage(runs=[_run_entry(row, shown.get(row.id)) for row in page], next=following)


def runs_before(store: Store, entries: Sequence[RunEntry], limit: int) -> dict[str, list[RunEntry]]:
    """Return for each suite of some runs, which come newest first, the newest of those that began before all of them.

    Raises:
        StoreError: the store cannot be read.
    """
    r = runs.c
    query = select(r.id, r.suite, r.status, r.started_at, r.finished_at, r.version)
    query = query.order_by(r.started_at.desc(), r.id.desc()).limit(limit)
    oldest = {entry.suite: entry for entry in entries}
    with store.connected() as connection:
        found = {
            suite: connection.execute(
                query.where(r.suite == _plain(suite), tuple_(r.started_at, r.id) < (entry.started_at, entry.id))
            ).all()
            for suite, entry in oldest.items()
        }
        shown = _newest_gradings(connection, [row.id for rows in found.values() for row in rows])
    return {suite: [_run_entry(row, shown.get(row.id)) for row in rows] for suite, rows in found.items()}


def suites_of_runs(store: Store) -> list[str]:
    """Return the names of the suites that runs are of, sorted."""
    with store.connected() as connection:
        return list(connection.execute(select(runs.c.suite).distinct().order_by(runs.c.suite)).scalars())


def list_samples(
    store: Store,
    grading_id: str,
    wanted: str | Sequence[Term] = (),
    *,
    sort: str = "position",
    after: str | None = None,
    limit: int = 50,
) -> SamplePage:
    """Return some attempts that a grading has scored, each with the scores that it gives it.

    `wanted` is a filter as `parse_filter` reads it. `sort` is `position`, `worst` (errors, then the lowest score
    first), `seconds`, `turns` or the name of a grader; with a leading `-` it goes down. What has no score comes last.

    Raises:
        UsageError: there is no such grading, the filter cannot be read, or `after` is no place of this list.
    """
    terms = _terms(store, wanted)
    with store.connected() as connection:
        within = _within(connection, grading_id)
        _check_graders(connection, within, terms)
        order = ordering(sort, within)
        chosen = select(standings, *order.extra).select_from(order.table).where(*conditions(terms, within))
        if after is not None:
            chosen = chosen.where(order.beyond(read_place(after, *order.kinds)))
        found = connection.execute(chosen.order_by(*order.by).limit(limit + 1)).all()
        samples = _sample_entries(connection, found[:limit], within)
    following = place_after([getattr(found[limit - 1], name) for name in order.names]) if len(found) > limit else None
    return SamplePage(samples=samples, next=following)


def count_samples(store: Store, grading_id: str, wanted: str | Sequence[Term] = ()) -> int:
    """Return how many attempts that a grading has scored a filter lets through.

    Raises:
        UsageError: there is no such grading, or the filter cannot be read.
    """
    terms = _terms(store, wanted)
    with store.connected() as connection:
        within = _within(connection, grading_id)
        _check_graders(connection, within, terms)
        query = select(func.count()).select_from(standings).where(*conditions(terms, within))
        return connection.execute(query).scalar_one()


def _terms(store: Store, wanted: str | Sequence[Term]) -> Sequence[Term]:
    terms = parse_filter(wanted) if isinstance(wanted, str) else wanted
    if any(isinstance(term, Has) and term.field == "text" for term in terms):
        store.catch_up()
    return terms


def _within(connection: Connection, grading_id: str) -> Within:
    spelled = _plain(grading_id)
    run_id = connection.execute(select(gradings.c.run_id).where(gradings.c.id == spelled)).scalar()
    if run_id is None:
        raise NotFound("grading", grading_id)
    return Within(run_id, spelled, on_postgresql(connection))


def _check_graders(connection: Connection, within: Within, terms: Sequence[Term]) -> None:
    """Refuse a filter by a grader that this grading does not have: nothing would match, and seem so."""
    names = dict.fromkeys(term.name for term in terms if isinstance(term, Compares) and term.grader)
    here = scores.c.grading_id == within.grading_id
    for name in names:
        if connection.execute(select(scores.c.id).where(here, scores.c.name == _plain(name)).limit(1)).first() is None:
            prints = connection.execute(select(gradings.c.fingerprints).where(gradings.c.id == within.grading_id))
            known = {*json.loads(prints.scalar() or "{}")}  # where nothing is scored yet
            known |= {*connection.execute(select(scores.c.name).where(here).distinct()).scalars()}
            if name not in known:
                raise UsageError(f"filter: no grader '{shorten(name, 80)}'{did_you_mean(name, known | {*NUMBERS})}")


def _newest_gradings(connection: Connection, ids: Sequence[str]) -> dict[str, AnyRow]:
    g = gradings.c
    if on_postgresql(connection):
        gate: ColumnElement[Any] = func.json_extract_path_text(cast(g.spec, JSON), "gate", "metric_key")
    else:
        gate = func.json_extract(g.spec, "$.gate.metric_key")
    query = select(g.id, g.run_id, g.verdict, g.summary, gate.label("gate")).where(g.run_id.in_(ids))
    complete_last = query.order_by(g.finished_at.is_not(None), g.created_at, g.id)
    return {row.run_id: row for row in connection.execute(complete_last)}


def _run_entry(run: AnyRow, grading: AnyRow | None) -> RunEntry:
    known: dict[str, Any] = dict(run._mapping)  # pyright: ignore[reportPrivateUsage] - its documented name
    if grading is not None:
        summary: dict[str, Any] = json.loads(grading.summary) if grading.summary else {}
        known |= {"grading": grading.id, "verdict": grading.verdict, "attempts": summary.get("attempts")}
        known["headline"] = _headline(summary.get("graders") or [], grading.gate)
    return RunEntry(**known)


def _headline(graders: Sequence[dict[str, Any]], gate: str | None) -> Headline | None:
    for name in (gate, "reward"):
        if found := next((one for one in graders if one["name"] == name), None):
            break
    else:
        found = graders[0] if graders else None
    return None if found is None else Headline(**{**found, "n": found["scored"]})


def _sample_entries(connection: Connection, page: Sequence[AnyRow], within: Within) -> list[SampleEntry]:
    a, s = attempts.c, scores.c
    ids = [row.attempt_id for row in page]
    held = select(a.id, a.sample_id, a.target, a.trial, a.sample, a.started_at, a.failure).where(a.id.in_(ids))
    attempt_of = {row.id: row for row in connection.execute(held)}
    said = connection.execute(
        select(s.attempt_id, s.kind, s.name, s.turn, s.state, s.value, s.passed, s.reason, s.failure)
        .where(s.grading_id == within.grading_id, s.attempt_id.in_(ids))
        .order_by(s.attempt_id, s.id)
    )
    by_attempt = {number: list(rows) for number, rows in groupby(said.all(), attrgetter("attempt_id"))}
    return [_sample_entry(row, attempt_of[row.attempt_id], by_attempt.get(row.attempt_id, ())) for row in page]


def _sample_entry(row: AnyRow, attempt: AnyRow, said: Sequence[AnyRow]) -> SampleEntry:
    sample: dict[str, Any] = json.loads(attempt.sample)
    return SampleEntry(
        sample_id=attempt.sample_id,
        target=attempt.target,
        trial=attempt.trial,
        position=row.position,
        title=title_of(sample) or attempt.sample_id,
        tags=sample.get("tags") or [],
        started_at=attempt.started_at,
        seconds=row.seconds,
        turns=row.turns,
        standing=row.state,
        failure=failure_of_text(attempt.failure),
        scores=_score_entries(said),
    )


def _score_entries(said: Sequence[AnyRow]) -> list[ScoreEntry]:
    apart: dict[str, list[TurnScore]] = {}
    for row in said:
        if row.turn is not None:
            apart.setdefault(row.name, []).append(
                TurnScore(turn=row.turn, state=row.state, value=row.value, passed=row.passed)
            )
    return [
        ScoreEntry(
            kind=row.kind,
            name=row.name,
            state=row.state,
            value=row.value,
            passed=row.passed,
            reason=shorten(row.reason, 3 * TITLE),
            failure=failure_of_text(row.failure),
            turns=apart.get(row.name, []) if row.kind == "grade" else [],
        )
        for row in said
        if row.turn is None
    ]


def title_of(sample: dict[str, Any]) -> str:
    """Return the goal of a sample, or the beginning of what it asks, empty where it says neither."""
    asked: Any = sample.get("goal") or sample.get("input")
    if isinstance(asked, list):
        asked = next(iter(typing.cast("list[Any]", asked)), None)
    if isinstance(asked, dict):
        asked = typing.cast("dict[str, Any]", asked).get("content")
    words = " ".join(asked.split()) if isinstance(asked, str) else ""
    return words if len(words) <= TITLE else words[: TITLE - 1] + "…"


def _plain(text: str) -> str:
    """Return a text as both databases keep and compare it."""
    return escape_nul(escape(text))
