"""Scores that say whether they pass, with typed findings, in place of what each grader left in its metadata."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_BATCH = 2000
_REPEATED = ("turns_passed", "turns_total", "per_turn_grades")
_ROWS = "vivavoce:rows"
"""What stood in metadata for the grades of turns, which have rows of their own."""
_STATES = {"yes": "pass", "partly": "partial", "no": "fail"}
_READ = "SELECT id, state, turns, extra FROM scores WHERE id > :last AND extra IS NOT NULL ORDER BY id LIMIT :limit"
_WRITE = """UPDATE scores SET extra = :extra, raw = :raw, confidence = :confidence, findings = :findings,
    other_evidence = :evidence WHERE id = :id"""
_PASSED = """UPDATE scores SET passed = CASE WHEN value >= 1 THEN 1 ELSE 0 END
    WHERE passed IS NULL AND value IS NOT NULL"""

Objects = list[dict[str, Any]]


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
    op.execute(_PASSED)
    op.execute("UPDATE scores SET passed = NULL WHERE passed IS NOT NULL AND value IS NULL")
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
        yield [{"id": row.id, **_values(json.loads(row.extra), row.state, row.turns is not None)} for row in rows]


def _values(metadata: Any, state: str, turns: bool) -> dict[str, Any]:
    """Return what was in the metadata of a grade by the columns that hold it now; what a metric did not write stays."""
    extra = dict(cast("dict[str, Any]", metadata)) if isinstance(metadata, dict) else {}
    raw = confidence = None
    if state == "scored" and _is_raw(extra.get("score")):
        raw = extra.pop("score")
        confidence = extra.pop("confidence") if _is_number(extra.get("confidence")) else None
    if isinstance(extra.get("passed"), bool):
        del extra["passed"]
    findings = _findings(extra)
    cited = [piece for finding in findings for piece in finding["evidence"]]
    evidence = _evidence(extra.get("evidence"))
    if evidence:
        del extra["evidence"]
    if turns and extra.get("per_turn_grades") in (_ROWS, []):
        extra = {name: value for name, value in extra.items() if name not in _REPEATED}
    return {
        "extra": json.dumps(extra) if extra else None,
        "raw": None if raw is None else json.dumps(raw),
        "confidence": confidence,
        "findings": json.dumps(findings) if findings else None,
        "evidence": json.dumps(other) if (other := [one for one in evidence or () if one not in cited]) else None,
    }


def _is_raw(value: Any) -> bool:
    return isinstance(value, bool | str) or _is_number(value)


def _convert_summaries(connection: sa.Connection) -> None:
    """Give the reasons of verdicts, which were sentences, the form of data: the sentence is all that is known."""
    rows = connection.execute(sa.text("SELECT id, summary FROM gradings WHERE summary IS NOT NULL")).all()
    for row in rows:
        summary: dict[str, Any] = json.loads(row.summary)
        summary["reasons"] = [_reason(one) for one in summary.get("reasons") or () if isinstance(one, str)]
        values = {"summary": json.dumps(summary), "id": row.id}
        connection.execute(sa.text("UPDATE gradings SET summary = :summary WHERE id = :id"), values)


def _reason(text: str) -> dict[str, Any]:
    verdict, _, sentence = text.partition(" · ")
    known = verdict if verdict in ("pass", "fail") else "inconclusive"
    return {"verdict": known, "code": "sentence", "text": sentence or text}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _findings(extra: dict[str, Any]) -> Objects:
    """Take the lists that metrics left in the metadata; one of another shape is somebody else's, and stays there."""
    findings: Objects = []
    for name, read in (("criteria", _criterion), ("checks", _check), ("violations", _violation)):
        found = [_finding(one, read(one)) for one in _objects(extra.get(name)) or ()]
        if found and all(found):
            findings += filter(None, found)
            del extra[name]
    return findings


Said = tuple[str, Any, str, str]
"""The kind of a finding, what it is about, its verdict and its state."""


def _criterion(one: Mapping[str, Any]) -> Said | None:
    if not isinstance(one.get("met"), bool):
        return None
    banned = one.get("kind") == "never" or one.get("must") is False
    verdict, state = ("met", "pass") if one["met"] else ("not met", "fail")
    return "prohibition" if banned else "criterion", one.get("outcome") or one.get("text"), verdict, state


def _check(one: Mapping[str, Any]) -> Said | None:
    answer = one.get("answer")
    return ("check", one.get("item"), answer, _STATES.get(answer, "skip")) if isinstance(answer, str) else None


def _violation(one: Mapping[str, Any]) -> Said | None:
    severity = one.get("severity", "violated")
    return ("violation", one.get("what"), severity, "fail") if isinstance(severity, str) else None


def _finding(one: Mapping[str, Any], said: Said | None) -> dict[str, Any] | None:
    """Return a finding, None where it is not of the shape that metrics write."""
    evidence = _evidence(one.get("evidence"))
    if said is None or evidence is None or not isinstance(said[1], str):
        return None
    turn = next((piece["turn"] for piece in evidence if piece["verified"]), None)
    known = dict(zip(("kind", "what", "verdict", "state"), said, strict=True))
    return {**known, "turn": turn, "evidence": evidence}


def _evidence(value: Any) -> Objects | None:
    """Return pieces of evidence, None where a list holds anything else."""
    found = _objects(value)
    return found if found is not None and all(map(_is_evidence, found)) else None


def _is_evidence(one: Mapping[str, Any]) -> bool:
    turn = one.get("turn")
    return (
        set(one) == {"text", "kind", "turn", "verified"}
        and isinstance(one["text"], str)
        and one["kind"] in ("quote", "call")
        and (turn is None or (isinstance(turn, int) and not isinstance(turn, bool)))
        and isinstance(one["verified"], bool)
    )


def _objects(value: Any) -> Objects | None:
    items = cast("list[Any]", value) if isinstance(value, list) else None
    return items if items is not None and all(isinstance(item, dict) for item in items) else None
