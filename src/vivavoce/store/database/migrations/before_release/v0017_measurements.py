"""Measurements: scores without a value, whose number is in their raw score."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_CHECK = "(state = 'scored') = (value IS NOT NULL OR raw IS NOT NULL)"


def upgrade() -> None:
    """Allow a score without a value where it has a raw score; SQLite needs a new table for that."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("scored_has_value", "scores", type_="check")
        op.create_check_constraint("scored_has_value", "scores", _CHECK)
        return
    op.rename_table("scores", "earlier_scores")
    names = ", ".join(column.name for column in _create_scores().columns)
    op.execute(f"INSERT INTO scores ({names}) SELECT {names} FROM earlier_scores")
    op.drop_table("earlier_scores")
    key = ["attempt_id", "grading_id", "kind", "name", sa.text("coalesce(turn, -1)")]
    op.create_index("scores_by_attempt", "scores", key, unique=True)
    columns = ["name", "grading_id", "attempt_id", "value", "passed", "turn"]
    op.create_index("scores_by_value", "scores", columns, sqlite_where=sa.text("turn IS NULL"))


def _create_scores() -> sa.Table:
    return op.create_table(
        "scores",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("attempt_id", _ID, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("grading_id", _NAME, sa.ForeignKey("gradings.id"), nullable=False),
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("turn", sa.Integer),
        sa.Column("turns", sa.Integer),
        sa.Column("state", _NAME, nullable=False),
        sa.Column("value", sa.Double),
        sa.Column("reason", sa.Text),
        sa.Column("submission", sa.Text),
        sa.Column("ground_truth", sa.Text),
        sa.Column("extra", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("usage", sa.Text),
        sa.Column("fingerprint", _NAME),
        sa.Column("passed", sa.Integer),
        sa.Column("raw", sa.Text),
        sa.Column("confidence", sa.Double),
        sa.Column("findings", sa.Text),
        sa.Column("other_evidence", sa.Text),
        sa.Column("settings", sa.Text),
        sa.CheckConstraint(_CHECK, name="scored_has_value"),
    )
