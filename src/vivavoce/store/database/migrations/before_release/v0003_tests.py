"""What a tester leaves of a conversation that it led."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op


def upgrade() -> None:
    """Add the column; what was recorded before has none."""
    op.add_column("attempts", sa.Column("test", sa.Text))
