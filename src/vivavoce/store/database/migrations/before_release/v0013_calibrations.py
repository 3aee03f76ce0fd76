"""How each labelled conversation was drawn, and the calibrations of judges."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and the table; of labels from before it is not known how they were drawn."""
    op.add_column("labels", sa.Column("drawn", sa.Double))
    op.add_column("queue_items", sa.Column("drawn", sa.Double))
    op.execute("UPDATE queue_items SET drawn = 1 WHERE queue_id IN (SELECT id FROM queues WHERE selection = 'random')")
    op.create_table(
        "calibrations",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("run_id", _NAME, nullable=False),
        sa.Column("grader", _NAME, nullable=False),
        sa.Column("fingerprint", _NAME, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("calibrations_by_run", "calibrations", ["run_id"])
    op.create_index("calibrations_by_fingerprint", "calibrations", ["fingerprint"])
