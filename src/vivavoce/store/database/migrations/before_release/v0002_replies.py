"""Replies of models, so that a question is paid for once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table; nothing refers to it."""
    op.create_table(
        "replies",
        sa.Column("key", _name, primary_key=True),
        sa.Column("model", _name, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
