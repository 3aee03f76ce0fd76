"""Whether a score passes where its grader says so, and where each conversation is in a grading, for lists."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_BATCH = 2000

_PASSED = """SELECT id, metadata FROM scores WHERE metadata LIKE '%"passed":%'"""
_STANDING = """
SELECT s.grading_id, a.position, s.attempt_id,
    min(CASE WHEN a.failure IS NOT NULL OR s.state = 'error' THEN 0 WHEN s.value IS NULL THEN 4
        WHEN s.passed = 1 OR (s.passed IS NULL AND s.value >= 1) THEN 3
        WHEN s.passed = 0 OR s.value <= 0 THEN 1 ELSE 2 END) AS mark,
    min(s.value) AS lowest, sum(CASE WHEN s.state = 'skipped' THEN 1 ELSE 0 END) AS skips, a.seconds,
    CASE WHEN a.failure IS NOT NULL THEN 1 ELSE 0 END AS broken,
    (SELECT count(*) FROM turns t WHERE t.attempt_id = a.id) AS turns,
    CASE WHEN a.sample LIKE '%"tags"%' THEN a.sample END AS sample
FROM attempts a JOIN scores s ON s.attempt_id = a.id
WHERE a.id >= :first AND a.id <= :last AND s.turn IS NULL
GROUP BY s.grading_id, a.position, s.attempt_id, a.id, a.seconds, a.failure, a.sample
"""
_MARKS = ("error", "fail", "part", "pass", "skip")


def upgrade() -> None:
    """Add what lists look at, and fill it in for everything that is there."""
    op.add_column("scores", sa.Column("passed", sa.Integer))
    op.drop_index("scores_by_value", "scores")
    whole = sa.text("turn IS NULL")
    columns = ["name", "grading_id", "attempt_id", "value", "turn"]
    op.create_index("scores_by_value", "scores", columns, sqlite_where=whole, postgresql_where=whole)
    op.create_table(
        "standings",
        sa.Column("grading_id", _name, sa.ForeignKey("gradings.id"), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("attempt_id", _id, nullable=False),
        sa.Column("state", _name, nullable=False),
        sa.Column("rank", sa.Double, nullable=False),
        sa.Column("lowest", sa.Double),
        sa.Column("skips", sa.Integer, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("tags", sa.Text),
        sa.PrimaryKeyConstraint("grading_id", "position", "attempt_id"),
        sqlite_with_rowid=False,
    )
    connection = op.get_bind()
    _keep_what_graders_say(connection)
    _fill(connection)


def _keep_what_graders_say(connection: sa.Connection) -> None:
    """Copy `passed` out of the metadata; in Python, because databases reject JSON with a NaN in it."""
    known: list[dict[str, int]] = []
    for number, metadata in connection.execute(sa.text(_PASSED)):
        said: Any = json.loads(metadata).get("passed")
        if isinstance(said, bool):
            known.append({"id": number, "passed": int(said)})
    for batch in _batches(known):
        connection.execute(sa.text("UPDATE scores SET passed = :passed WHERE id = :id"), batch)


def _fill(connection: sa.Connection) -> None:
    table = sa.table("standings", *map(sa.column, _COLUMNS))
    numbers = connection.execute(sa.text("SELECT id FROM attempts ORDER BY id")).scalars().all()
    for batch in _batches(numbers):
        rows = connection.execute(sa.text(_STANDING), {"first": batch[0], "last": batch[-1]}).all()
        if rows:
            connection.execute(sa.insert(table), [dict(zip(_COLUMNS, _row(row), strict=True)) for row in rows])


_COLUMNS = ("grading_id", "position", "attempt_id", "state", "rank", "lowest", "skips", "turns", "seconds", "tags")


def _row(row: Any) -> tuple[Any, ...]:
    lowest = 1e18 if row.lowest is None else row.lowest
    rank = -2.0 if row.broken else -1.0 if row.mark == 0 else lowest
    tags = _tags(row.sample) if row.sample else None
    known = (row.grading_id, row.position, row.attempt_id, _MARKS[row.mark], rank, row.lowest)
    return (*known, row.skips, row.turns, row.seconds, tags)


def _tags(sample: str) -> str | None:
    read: Any = json.loads(sample)
    tags: Any = cast("dict[str, Any]", read).get("tags") if isinstance(read, dict) else None
    named = [one for one in cast("list[Any]", tags) if isinstance(one, str)] if isinstance(tags, list) else []
    return "".join("\x1f" + one.replace("\x1f", "") + "\x1f" for one in named) or None


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))
