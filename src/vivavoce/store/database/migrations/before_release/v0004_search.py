"""What full-text search has read, and what it has still to read: everything that is there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables; the index itself is another in each database."""
    op.create_table(
        "passages",
        sa.Column("id", _id, primary_key=True),
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("grading_id", _name, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("passages_by_attempt", "passages", ["attempt_id"])
    op.create_table(
        "unread",
        sa.Column("attempt_id", _id, nullable=False, autoincrement=False),
        sa.Column("grading_id", _name, nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", "grading_id"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE passages ADD COLUMN words tsvector NOT NULL")
        op.execute("CREATE INDEX passages_by_word ON passages USING gin (words)")
    else:
        op.execute(
            "CREATE VIRTUAL TABLE passage_words USING fts5("
            "words, run, content='', columnsize=0, tokenize='unicode61 remove_diacritics 0')"
        )
    op.execute("INSERT INTO unread SELECT id, '' FROM attempts")
    op.execute("INSERT INTO unread SELECT DISTINCT attempt_id, grading_id FROM scores WHERE rationale IS NOT NULL")
