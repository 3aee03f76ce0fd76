"""Conversations that were drawn from many: from which stratum, and how likely."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    """Add the columns; no conversation so far was drawn."""
    op.add_column("attempts", sa.Column("stratum", sa.Integer))
    op.add_column("attempts", sa.Column("probability", sa.Double))
