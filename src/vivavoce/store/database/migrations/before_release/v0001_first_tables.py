"""The first tables: runs, gradings, attempts, turns, scores."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables in the order in which they refer to each other."""
    _runs()
    _gradings()
    _attempts()
    _turns()
    _scores()


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", _name, primary_key=True),
        sa.Column("suite", _name, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("base", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("status", _name, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("version", _name, nullable=False),
    )
    op.create_index("runs_by_time", "runs", ["started_at"])


def _gradings() -> None:
    op.create_table(
        "gradings",
        sa.Column("id", _name, primary_key=True),
        sa.Column("run_id", _name, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("fingerprints", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("verdict", _name),
        sa.Column("summary", sa.Text),
    )
    op.create_index("gradings_by_run", "gradings", ["run_id"])


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", _id, primary_key=True, autoincrement=False),
        sa.Column("run_id", _name, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("sample_id", _name, nullable=False),
        sa.Column("target", _name, nullable=False),
        sa.Column("trial", sa.Integer, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("scenario", _name, nullable=False),
        sa.Column("session_id", _name),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("sample", sa.Text, nullable=False),
        sa.Column("opening", sa.Text),
        sa.Column("state", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("usage", sa.Text),
        sa.UniqueConstraint("run_id", "sample_id", "target", "trial", name="attempts_by_key"),
    )
    op.create_index("attempts_by_run", "attempts", ["run_id", "position", "id"])


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("idx", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("seconds", sa.Double),
        sa.Column("messages", sa.Text, nullable=False),
        sa.Column("usage", sa.Text),
        sa.Column("failure", sa.Text),
        sa.PrimaryKeyConstraint("attempt_id", "idx"),
    )


def _scores() -> None:
    op.create_table(
        "scores",
        sa.Column("id", _id, primary_key=True),
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("grading_id", _name, sa.ForeignKey("gradings.id"), nullable=False),
        sa.Column("kind", _name, nullable=False),
        sa.Column("name", _name, nullable=False),
        sa.Column("turn", sa.Integer),
        sa.Column("turns", sa.Integer),
        sa.Column("state", _name, nullable=False),
        sa.Column("value", sa.Double),
        sa.Column("rationale", sa.Text),
        sa.Column("submission", sa.Text),
        sa.Column("ground_truth", sa.Text),
        sa.Column("metadata", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("usage", sa.Text),
        sa.Column("fingerprint", _name),
        sa.CheckConstraint("(state = 'scored') = (value IS NOT NULL)", name="scored_has_value"),
    )
    key = ["attempt_id", "grading_id", "kind", "name", sa.text("coalesce(turn, -1)")]
    op.create_index("scores_by_attempt", "scores", key, unique=True)
    whole = sa.text("turn IS NULL")
    columns = ["name", "grading_id", "value"]
    op.create_index("scores_by_value", "scores", columns, sqlite_where=whole, postgresql_where=whole)
