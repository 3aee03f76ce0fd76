"""Jobs that several servers share, what their clients have left of the rate limits, and the secrets of their forms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    _create_jobs()
    op.create_table(
        "job_events",
        sa.Column("job_id", _name, sa.ForeignKey("jobs.id"), nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("events", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "last"),
    )
    op.create_table(
        "job_inputs",
        sa.Column("job_id", _name, sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "rate_limits",
        sa.Column("client", _name, primary_key=True),
        sa.Column("left", sa.Double, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_index("rate_limits_by_time", "rate_limits", ["at"])
    op.create_table(
        "server_secrets",
        sa.Column("name", _name, primary_key=True),
        sa.Column("value", _name, nullable=False),
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", _name, primary_key=True),
        sa.Column("folder", _name, nullable=False),
        sa.Column("kind", _name, nullable=False),
        sa.Column("status", _name, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("suite", sa.Text),
        sa.Column("run", _name),
        sa.Column("grading", _name),
        sa.Column("planned", sa.BigInteger),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("verdict", _name),
        sa.Column("detail", sa.Text),
        sa.Column("request", sa.Text),
        sa.Column("key", _name),
        sa.Column("body", _name, nullable=False),
        sa.Column("new_run", _name),
        sa.Column("starts", sa.Integer, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.Column("cost", sa.Double, nullable=False),
        sa.Column("cancels", sa.Integer, nullable=False),
        sa.Column("owner", _name),
        sa.Column("lease_until", sa.Double, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("holds", _name),
    )
    op.create_index("jobs_by_time", "jobs", ["created_at", "id"])
    op.create_index("jobs_by_status", "jobs", ["status", "created_at"])
    op.create_index("jobs_by_run", "jobs", ["run"])
    op.create_index("jobs_by_hold", "jobs", ["holds"])
    op.create_index("jobs_by_key", "jobs", ["folder", "key"], unique=True)
