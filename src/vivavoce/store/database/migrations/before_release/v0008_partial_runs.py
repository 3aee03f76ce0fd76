"""Runs that repeat another one only in part."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; every run so far is whole."""
    op.add_column("runs", sa.Column("partial_of", _NAME))
