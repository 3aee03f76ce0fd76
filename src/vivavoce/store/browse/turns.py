"""The turns of one conversation, a page at a time, each with what the graders say of it."""

from __future__ import annotations

from sqlalchemy import select

from vivavoce.records.run import Grading
from vivavoce.records.score import Score
from vivavoce.store.browse.keyset import place_after, read_place
from vivavoce.store.browse.listing import GradedTurn, TurnPage
from vivavoce.store.database.database import spelled
from vivavoce.store.database.schema import attempts, scores, turns
from vivavoce.store.runs.decode import score_of, turn_of
from vivavoce.store.runs.naming import keys_of, no_conversation
from vivavoce.store.store import Store


def list_turns(
    store: Store,
    grading: Grading,
    sample_id: str,
    trial: int,
    *,
    target: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> TurnPage:
    """Return some turns of a conversation of a graded run; of several targets the first, unless it is named.

    Raises:
        UsageError: there is no such conversation, or `after` is no place of this list.
    """
    a, s, t = attempts.c, scores.c, turns.c
    (last,) = (-1,) if after is None else read_place(after, int)
    with store.connected() as connection:
        mine = select(a.id).where(a.run_id == grading.run_id, a.sample_id == spelled(connection, sample_id))
        mine = mine.where(a.trial == trial)
        if target is not None:
            mine = mine.where(a.target == spelled(connection, target))
        attempt = connection.execute(mine.order_by(a.position + 0, a.id).limit(1)).scalar()
        if attempt is None:
            there = keys_of(connection, grading.run_id, sample_id)
            raise no_conversation(grading.run_id, sample_id, target, trial, there)
        held = select(turns).where(t.attempt_id == attempt, t.idx > last).order_by(t.idx).limit(limit + 1)
        found = connection.execute(held).all()
        page = found[:limit]
        said = select(scores).where(s.attempt_id == attempt, s.grading_id == grading.id, s.kind == "grade")
        rows = connection.execute(said.where(s.turn.in_([row.idx for row in page])).order_by(s.id)).all()
    by_turn: dict[int, dict[str, Score]] = {row.idx: {} for row in page}
    for row in rows:
        by_turn[row.turn][row.name] = score_of(row)
    following = place_after((page[-1].idx,)) if len(found) > limit else None
    return TurnPage(turns=[GradedTurn(turn=turn_of(row), scores=by_turn[row.idx]) for row in page], next=following)
