"""The names that a search may ask for: suites, targets, graders and tags, those of the newest runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sqlalchemy import Connection, select

from vivavoce.errors import NotFound
from vivavoce.store.browse.status import BETWEEN
from vivavoce.store.database.schema import gradings, runs, sample_index, scores
from vivavoce.store.search.query import Query
from vivavoce.store.search.which_runs import targets_of

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
