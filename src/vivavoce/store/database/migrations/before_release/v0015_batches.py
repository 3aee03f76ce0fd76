"""What was given to batch services, so that nothing is asked twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables, which are empty."""
    op.create_table(
        "batches",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("model", _NAME, nullable=False),
        sa.Column("identity", _NAME, nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("file", _NAME),
        sa.Column("service_id", _NAME),
        sa.Column("strangers", sa.Text, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("cause", sa.Text),
    )
    op.create_index("batches_by_identity", "batches", ["identity", "ended_at"])
    op.create_table(
        "batch_questions",
        sa.Column("key", _NAME, primary_key=True),
        sa.Column("batch_id", _NAME, nullable=False),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("state", _NAME, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("answers", sa.Integer, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("then", _NAME),
        sa.Column("usage", sa.Text),
    )
    op.create_index("batch_questions_by_batch", "batch_questions", ["batch_id"])
