"""What watches production, and what it saw in each hour."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables, which a watch fills from now on."""
    op.create_table(
        "watches",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("heard_at", sa.Double, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "watch_hours",
        sa.Column("watch", _NAME, nullable=False),
        sa.Column("hour", sa.BigInteger, nullable=False),
        sa.Column("figures", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("watch", "hour"),
    )
