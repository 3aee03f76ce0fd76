"""What people say of a run, and in lists the target, the trial, the usage and the error of each conversation."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_BATCH = 2000
_KNOWN = """UPDATE standings SET target = (SELECT a.target FROM attempts a WHERE a.id = standings.attempt_id),
    trial = (SELECT a.trial FROM attempts a WHERE a.id = standings.attempt_id)"""
_HELD = """SELECT s.grading_id, s.position, s.attempt_id, s.state, a.usage, a.test, a.failure
FROM standings s JOIN attempts a ON a.id = s.attempt_id
WHERE (s.grading_id, s.position, s.attempt_id) > (:grading, :position, :attempt)
ORDER BY s.grading_id, s.position, s.attempt_id LIMIT :limit"""
_SCORES = """SELECT attempt_id, grading_id, kind, name, state, failure, reason, usage FROM scores
WHERE attempt_id IN :attempts AND turn IS NULL AND (usage IS NOT NULL OR state = 'error') ORDER BY attempt_id, id"""
_WRITE = """UPDATE standings SET tokens = :tokens, cost = :cost, cause = :cause
WHERE grading_id = :grading AND position = :position AND attempt_id = :attempt"""

Used = dict[str, Any]


def upgrade() -> None:
    """Add the columns, and fill those of the lists."""
    for name in ("title", "notes", "tags"):
        op.add_column("runs", sa.Column(name, sa.Text))
    op.add_column("standings", sa.Column("target", _NAME))
    op.add_column("standings", sa.Column("trial", sa.Integer))
    op.add_column("standings", sa.Column("tokens", sa.BigInteger))
    op.add_column("standings", sa.Column("cost", sa.Double))
    op.add_column("standings", sa.Column("cause", _NAME))
    op.execute(_KNOWN)
    connection = op.get_bind()
    scores = sa.text(_SCORES).bindparams(sa.bindparam("attempts", expanding=True))
    last: dict[str, Any] = {"grading": "", "position": -1, "attempt": -1}
    while rows := connection.execute(sa.text(_HELD), {**last, "limit": _BATCH}).all():
        by_place: defaultdict[tuple[int, str], list[Any]] = defaultdict(list)
        for row in connection.execute(scores, {"attempts": [row.attempt_id for row in rows]}):
            by_place[row.attempt_id, row.grading_id].append(row)
        values = [_values(row, by_place.get((row.attempt_id, row.grading_id), ())) for row in rows]
        if known := [value for value in values if value["tokens"] is not None or value["cause"] is not None]:
            connection.execute(sa.text(_WRITE), known)
        last = {name: values[-1][name] for name in last}
    error, columns = sa.text("cause IS NOT NULL"), ["grading_id", "cause", "target", "position", "attempt_id"]
    op.create_index("standings_by_cause", "standings", columns, sqlite_where=error, postgresql_where=error)


def _values(row: Any, scores: Sequence[Any]) -> dict[str, Any]:
    used = _used(
        row, [json.loads(score.usage) for score in scores if score.usage is not None and score.kind == "grade"]
    )
    error = _error(row, scores) if row.state == "error" else None
    return {
        "grading": row.grading_id,
        "position": row.position,
        "attempt": row.attempt_id,
        "tokens": None if used is None else used["input_tokens"] + used["output_tokens"],
        "cost": None if used is None else used["cost"],
        "cause": None if error is None else hashlib.sha256(error.encode("utf-8", "surrogatepass")).hexdigest()[:10],
    }


def _used(row: Any, graded: Sequence[Used]) -> Used | None:
    """Add up what the conversation and this grading of it used; a tester's test has the target's usage in it."""
    if row.usage is None and row.test is None and not graded:
        return None
    if row.test is not None:
        test: dict[str, dict[str, Used]] = json.loads(row.test)
        held: list[Used] = list((test.get("usage") or {}).values())
    else:
        held = [] if row.usage is None else [json.loads(row.usage)]
    found: Used = {"input_tokens": 0, "output_tokens": 0, "calls": 0, "cost": None}
    for one in (*held, *graded):
        cost, calls = one.get("cost"), one.get("calls") or 0
        if not found["calls"] or not calls:
            found["cost"] = found["cost"] if found["calls"] else cost
        else:
            found["cost"] = None if found["cost"] is None or cost is None else found["cost"] + cost
        for name in ("input_tokens", "output_tokens", "calls"):
            found[name] += one.get(name) or 0
    return found


def _error(row: Any, scores: Sequence[Any]) -> str | None:
    if row.failure is not None:
        return _said(row.failure)
    first = next((score for score in scores if score.state == "error"), None)
    if first is None:
        return None
    return f"{first.name}: {_said(first.failure) if first.failure is not None else first.reason or 'error'}"


def _said(failure: str) -> str:
    known: dict[str, Any] = json.loads(failure)
    return f"{known['blame']}: {known['message']}"
