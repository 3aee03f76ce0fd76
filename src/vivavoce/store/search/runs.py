"""The runs that a search covers, and the names it may ask for: suites, targets, graders, and tags."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, String, bindparam, select, text

from vivavoce.errors import NotFound
from vivavoce.store.database.database import AnyRow
from vivavoce.store.database.schema import attempts, comments, gradings, runs, sample_index, scores
from vivavoce.store.runs.naming import find
from vivavoce.store.runs.rows import BETWEEN
from vivavoce.store.search.query import OF_RUNS, Query, folded, has_all, has_any, start_of

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


_NAMED = 500
"""Runs up to which a query names them; beyond, it reads what all runs have."""

# SQLite takes the tables of a CROSS JOIN in this order: one place in the index for each run, not all attempts
_TARGETS = """
SELECT DISTINCT a.run_id, a.target FROM runs r CROSS JOIN attempts a
WHERE a.run_id = r.id AND a.sample_id = (SELECT min(b.sample_id) FROM attempts b WHERE b.run_id = r.id) {also}
"""


def runs_of(connection: Connection, query: Query) -> list[str] | None:
    """Return the ids of the runs that the operators of a query allow, the newest first; None for all of them.

    Raises:
        UsageError: there is no such run, suite or target.
    """
    if not any(term.field in OF_RUNS and (term.field, term.negated) != ("target", True) for term in query.terms):
        return None
    r = runs.c
    conditions: list[ColumnElement[bool]] = [
        *(r.started_at < start_of(day) for day in query.wanted("before")),
        *(r.started_at >= start_of(day) for day in query.wanted("after")),
    ]
    for values, negated in ((query.wanted("run"), False), (query.unwanted("run"), True)):
        if values:
            ids = [find(connection, runs, r.started_at, value).id for value in values]
            conditions.append(r.id.not_in(ids) if negated else r.id.in_(ids))
    if query.uses("suite"):
        known = connection.execute(select(r.suite).distinct()).scalars().all()
        for values, negated in ((query.wanted("suite"), False), (query.unwanted("suite"), True)):
            if values:
                names = _match_names("suite", values, known)
                conditions.append(r.suite.not_in(names) if negated else r.suite.in_(names))
    chosen = select(r.id).where(*conditions).order_by(r.started_at.desc(), r.id.desc())
    ids = list(connection.execute(chosen).scalars())
    return _with_target(connection, ids, query) if query.wanted("target") else ids


def targets_of(connection: Connection, ids: Sequence[str]) -> dict[str, set[str]]:
    """Return the targets of runs, which are those of the first sample of each."""
    found: dict[str, set[str]] = {}
    wanted = set(ids)
    named = len(wanted) <= _NAMED
    listed = text(_TARGETS.format(also="AND r.id IN :ids" if named else ""))
    if named:
        listed = listed.bindparams(bindparam("ids", list(wanted), String, expanding=True))
    for run, target in connection.execute(listed).all():
        if run in wanted:
            found.setdefault(run, set()).add(target)
    return found


def told_of(connection: Connection, query: Query) -> list[str]:
    """Return the ids of the runs whose id, suite, target, title, notes or tags have the words of a query, newest first.

    Raises:
        UsageError: there is no such run, suite or target.
    """
    r = runs.c
    allowed = runs_of(connection, query)
    listed = select(r.id, r.suite, r.title, r.notes, r.tags).order_by(r.started_at.desc(), r.id.desc())
    rows = connection.execute(listed).all()
    if allowed is not None:
        among = set(allowed)
        rows = [row for row in rows if row.id in among]
    if not query.words and not query.excluded:
        return [row.id for row in rows]
    targets = targets_of(connection, [row.id for row in rows])
    return [row.id for row in rows if _fits(query, (*_said_of(row), *targets.get(row.id, ())))]


def _said_of(row: AnyRow) -> list[str]:
    return [one for one in (row.id, row.suite, row.title, row.notes, row.tags) if one]


def _fits(query: Query, texts: Iterable[str]) -> bool:
    """Return whether all words occur in texts, a word also as the beginning of a longer one."""
    held = " " + " ".join(" ".join(folded(text).split()) for text in texts)
    return all(f" {phrase}" in held for phrase in query.words) and not any(f" {one}" in held for one in query.excluded)


def _with_target(connection: Connection, ids: Sequence[str], query: Query) -> list[str]:
    targets = targets_of(connection, ids)
    known = {name for names in targets.values() for name in names}
    wanted = {*_match_names("target", query.wanted("target"), known)} if known else set[str]()
    return [run for run in ids if targets.get(run, set()) & wanted]


def _match_names(what: str, values: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the known names that are meant: case does not matter, and `*` at the end stands for any rest."""
    names = list(known)
    found: list[str] = []
    for value in values:
        asked = value.casefold()
        fits = [
            name
            for name in names
            if name.casefold() == asked or (asked.endswith("*") and name.casefold().startswith(asked[:-1]))
        ]
        if not fits:
            raise NotFound(what, value, known=names)
        found += fits
    return found


NEWEST = 50
"""Runs whose targets, graders and tags are offered."""
SAMPLES = 300
"""Samples of a run whose tags are offered."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names, sorted; `runs` are the ids of the newest runs, the newest first."""

    runs: list[str]
    suites: list[str]
    targets: list[str]
    graders: list[str]
    tags: list[str]


def vocabulary(connection: Connection) -> Vocabulary:
    """Return the names that operators may have."""
    newest = _newest(connection)
    suites = connection.execute(select(runs.c.suite).distinct().order_by(runs.c.suite)).scalars()
    return Vocabulary(
        runs=newest,
        suites=list(suites),
        targets=sorted(set(chain.from_iterable(targets_of(connection, newest).values()))),
        graders=_graders(connection, newest),
        tags=_tags(connection, newest),
    )


def check_names(connection: Connection, query: Query) -> None:
    """Refuse a grader or a tag that nothing has, for a search that found nothing: it may be mistyped.

    Raises:
        NotFound: there is no such grader or tag.
    """
    for name in (*query.wanted("grader"), *query.unwanted("grader")):
        if connection.execute(select(scores.c.id).where(scores.c.name == name).limit(1)).first() is None:
            raise NotFound("grader", name, known=_graders(connection, _newest(connection)))
    if query.uses("tag"):
        known = _tags(connection, _newest(connection))
        for name in (*query.wanted("tag"), *query.unwanted("tag")):
            if name not in known:
                raise NotFound("tag", name, within="the newest runs", known=known)


def _newest(connection: Connection) -> list[str]:
    r = runs.c
    listed = select(r.id).order_by(r.started_at.desc(), r.id.desc()).limit(NEWEST)
    return list(connection.execute(listed).scalars())


def _graders(connection: Connection, newest: list[str]) -> list[str]:
    g = gradings.c
    held = connection.execute(select(g.fingerprints, g.summary).where(g.run_id.in_(newest))).all()
    return sorted({name for row in held for name in (*_keys(row.fingerprints), *_summed_up(row.summary))})


def _keys(fingerprints: str) -> list[str]:
    return list(json.loads(fingerprints))


def _summed_up(summary: str | None) -> list[str]:
    known: dict[str, Any] = json.loads(summary) if summary else {}
    return [one["name"] for one in known.get("graders") or ()]


def _tags(connection: Connection, newest: list[str]) -> list[str]:
    """Return the tags of the first samples of runs."""
    found: set[str] = set()
    d, g = sample_index.c, gradings.c
    for grading_id in connection.execute(select(g.id).where(g.run_id.in_(newest))).scalars().all():
        some = select(d.tags).where(d.grading_id == grading_id).limit(SAMPLES).subquery()
        for tags in connection.execute(select(some.c.tags).distinct()).scalars():
            found.update(filter(None, (tags or "").split(BETWEEN)))
    return sorted(found)
