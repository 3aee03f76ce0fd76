"""The tables of the first release."""

from __future__ import annotations

from pathlib import Path

from alembic import op

_BETWEEN = ";\n\n"
"""What stands between two statements of a file."""


def upgrade() -> None:
    """Make all tables and indexes; PostgreSQL and SQLite have a file of statements each."""
    connection = op.get_bind()
    statements = Path(__file__).with_name(f"v1001_{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in statements.split(_BETWEEN):
        connection.exec_driver_sql(statement)
