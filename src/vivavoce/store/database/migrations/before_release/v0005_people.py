"""What people add: their labels, the tokens they come with, and the record of what they changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "labels",
        sa.Column("id", _id, primary_key=True),
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("turn", sa.Integer),
        sa.Column("grader", _name, nullable=False),
        sa.Column("author", _name, nullable=False),
        sa.Column("verdict", _name, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("blind", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index(
        "labels_by_attempt",
        "labels",
        ["attempt_id", "grader", "author", sa.text("coalesce(turn, -1)")],
        unique=True,
    )
    op.create_table(
        "tokens",
        sa.Column("id", _name, primary_key=True),
        sa.Column("digest", _name, nullable=False),
        sa.Column("name", _name, nullable=False),
        sa.Column("role", _name, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
    )
    op.create_index("tokens_by_digest", "tokens", ["digest"], unique=True)
    op.create_table(
        "audit",
        sa.Column("id", _id, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("actor", _name, nullable=False),
        sa.Column("action", _name, nullable=False),
        sa.Column("subject", _name, nullable=False),
        sa.Column("detail", sa.Text),
    )
