"""The scores of a graded run as one list, a page at a time: first of a whole conversation, then of its turns."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, or_, select, tuple_

from vivavoce.records.failure import shorten
from vivavoce.records.run import Grading
from vivavoce.records.score import State
from vivavoce.store.browse.browse import TITLE
from vivavoce.store.browse.keyset import place_after, read_place
from vivavoce.store.browse.listing import ListedScore, ScorePage
from vivavoce.store.database.database import spelled
from vivavoce.store.database.schema import attempts, scores
from vivavoce.store.runs.decode import AnyRow, failure_of_text
from vivavoce.store.store import Store

_PLACE: tuple[ColumnElement[Any], ...] = (attempts.c.position, attempts.c.id)


def list_scores(
    store: Store,
    grading: Grading,
    *,
    grader: str | None = None,
    state: State | None = None,
    after: str | None = None,
    limit: int = 50,
) -> ScorePage:
    """Return some scores of a grading, in the order of the plan of its run.

    Raises:
        UsageError: `after` is no place of this list.
    """
    a, s = attempts.c, scores.c
    query = select(a.sample_id, a.target, a.trial, a.position, a.id.label("attempt"), scores)
    with store.connected() as connection:
        query = query.join_from(attempts, scores, s.attempt_id == a.id)
        query = query.where(a.run_id == grading.run_id, s.grading_id == grading.id)
        if grader is not None:
            query = query.where(s.name == spelled(connection, grader))
        if state is not None:
            query = query.where(s.state == state)
        if after is not None:
            position, attempt, last = read_place(after, int, int, int)
            # the first of the two is what an index finds
            query = query.where(tuple_(*_PLACE) >= (position, attempt), or_(a.id != attempt, s.id > last))
        found = connection.execute(query.order_by(*_PLACE, s.id).limit(limit + 1)).all()
    page = found[:limit]
    last = page[-1] if len(found) > limit else None
    following = None if last is None else place_after((last.position, last.attempt, last.id))
    return ScorePage(scores=[_listed(row) for row in page], next=following)


def _listed(row: AnyRow) -> ListedScore:
    return ListedScore(
        sample_id=row.sample_id,
        target=row.target,
        trial=row.trial,
        kind=row.kind,
        name=row.name,
        turn=row.turn,
        state=row.state,
        value=row.value,
        passed=None if row.passed is None else bool(row.passed),
        reason=shorten(row.reason, 3 * TITLE),
        failure=failure_of_text(row.failure),
    )
