"""Scores that say whether they pass, with typed findings, in place of what each grader left in its metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_BATCH = 2000
_TURNS = ("turns_passed", "turns_total", "per_turn_grades")
_FOUND = ("criteria", "checks", "violations")
_STATES = {"yes": "pass", "partly": "partial", "no": "fail"}
_READ = "SELECT id, turns, extra FROM scores WHERE id > :last AND extra IS NOT NULL ORDER BY id LIMIT :limit"
_WRITE = """UPDATE scores SET extra = :extra, raw = :raw, confidence = :confidence, findings = :findings,
    other_evidence = :evidence WHERE id = :id"""


def upgrade() -> None:
    """Rename and add columns, and fill them from what is there; scores without a word on passing pass with 1."""
    op.execute("ALTER TABLE scores RENAME COLUMN rationale TO reason")
    op.execute("ALTER TABLE scores RENAME COLUMN metadata TO extra")
    op.add_column("scores", sa.Column("raw", sa.Text))
    op.add_column("scores", sa.Column("confidence", sa.Double))
    for name in ("findings", "other_evidence", "settings"):
        op.add_column("scores", sa.Column(name, sa.Text))
    op.add_column("gradings", sa.Column("passed_added", sa.Integer))
    op.create_table(
        "replaced",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("sample_id", _NAME, nullable=False),
        sa.Column("target", _NAME, nullable=False),
        sa.Column("trial", sa.Integer, nullable=False),
        sa.Column("replaced_at", sa.Double, nullable=False),
        sa.Column("rows", sa.Text, nullable=False),
    )
    op.create_index("replaced_by_run", "replaced", ["run_id"])
    connection = op.get_bind()
    for rows in _converted(connection):
        connection.execute(sa.text(_WRITE), rows)
    op.execute("UPDATE scores SET passed = CASE WHEN value >= 1 THEN 1 ELSE 0 END WHERE passed IS NULL AND value >= 0")
    op.execute("UPDATE standings SET state = 'fail' WHERE state = 'part'")
    op.execute("UPDATE gradings SET passed_added = 1")
    _convert_summaries(connection)
    op.drop_index("scores_by_value", "scores")
    whole = sa.text("turn IS NULL")
    columns = ["name", "grading_id", "attempt_id", "value", "passed", "turn"]
    op.create_index("scores_by_value", "scores", columns, sqlite_where=whole, postgresql_where=whole)


def _converted(connection: sa.Connection) -> Iterator[list[dict[str, Any]]]:
    """Yield the new values of rows, some at a time."""
    last = -1
    while rows := connection.execute(sa.text(_READ), {"last": last, "limit": _BATCH}).all():
        last = rows[-1].id
        yield [{"id": row.id, **_values(json.loads(row.extra), graded=row.turns is not None)} for row in rows]


def _values(metadata: Any, *, graded: bool) -> dict[str, Any]:
    """Return what was in the metadata of a grade by the columns that hold it now."""
    extra = dict(cast("dict[str, Any]", metadata)) if isinstance(metadata, dict) else {}
    of_metric = "passed" in extra or "confidence" in extra
    raw = extra.pop("score", None) if of_metric else None
    confidence = extra.pop("confidence", None) if of_metric else None
    evidence = _objects(extra.pop("evidence", None)) if of_metric else []
    if isinstance(extra.get("passed"), bool):
        del extra["passed"]
    findings = [_finding(kind, one) for kind in _FOUND for one in _objects(extra.get(kind))]
    if findings:
        extra = {name: value for name, value in extra.items() if name not in _FOUND}
    if graded:
        extra = {name: value for name, value in extra.items() if name not in _TURNS}
    return {
        "extra": json.dumps(extra) if extra else None,
        "raw": None if raw is None else json.dumps(raw),
        "confidence": confidence if isinstance(confidence, int | float) else None,
        "findings": json.dumps(findings) if findings else None,
        "evidence": json.dumps(evidence) if evidence and not findings else None,
    }


def _finding(kind: str, one: Mapping[str, Any]) -> dict[str, Any]:
    evidence = _objects(one.get("evidence"))
    turn = next((found["turn"] for found in evidence if found.get("verified")), None)
    if kind == "criteria":
        met, banned = bool(one.get("met")), one.get("kind") == "never" or one.get("must") is False
        what = one.get("outcome") or one.get("text")
        about = ("prohibition" if banned else "criterion", what, "met" if met else "not met")
        state = "pass" if met else "fail"
    elif kind == "checks":
        answer = str(one.get("answer"))
        about, state = ("check", one.get("item"), answer), _STATES.get(answer, "skip")
    else:
        about, state = ("violation", one.get("what"), str(one.get("severity", "violated"))), "fail"
    what, word, verdict = about[1], about[0], about[2]
    return {"kind": word, "what": str(what), "verdict": verdict, "state": state, "turn": turn, "evidence": evidence}


def _convert_summaries(connection: sa.Connection) -> None:
    """Give the reasons of verdicts, which were sentences, the form of data: the sentence is all that is known."""
    rows = connection.execute(sa.text("SELECT id, summary FROM gradings WHERE summary IS NOT NULL")).all()
    for row in rows:
        summary: dict[str, Any] = json.loads(row.summary)
        summary["reasons"] = [_reason(one) for one in summary.get("reasons") or ()]
        values = {"summary": json.dumps(summary), "id": row.id}
        connection.execute(sa.text("UPDATE gradings SET summary = :summary WHERE id = :id"), values)


def _reason(text: str) -> dict[str, Any]:
    verdict, _, sentence = text.partition(" · ")
    known = verdict if verdict in ("pass", "fail") else "inconclusive"
    return {"verdict": known, "code": "sentence", "text": sentence or text}


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
