"""What people do together: comments, decisions where labels differ, queues that are assigned, views, webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_name = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    _comments()
    _decisions()
    _queues()
    _views()
    _webhooks()


def _comments() -> None:
    op.create_table(
        "comments",
        sa.Column("id", _id, primary_key=True),
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("turn", sa.Integer),
        sa.Column("author", _name, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("resolved_by", _name),
        sa.Column("resolved_at", sa.Double),
    )
    op.create_index("comments_by_attempt", "comments", ["attempt_id"])


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", _id, primary_key=True),
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("turn", sa.Integer),
        sa.Column("grader", _name, nullable=False),
        sa.Column("author", _name, nullable=False),
        sa.Column("verdict", _name, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("blind", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    place = ["attempt_id", "grader", sa.text("coalesce(turn, -1)")]
    op.create_index("decisions_by_attempt", "decisions", place, unique=True)


def _queues() -> None:
    op.create_table(
        "queues",
        sa.Column("id", _name, primary_key=True),
        sa.Column("run_id", _name, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("grading_id", _name, sa.ForeignKey("gradings.id"), nullable=False),
        sa.Column("grader", _name, nullable=False),
        sa.Column("selection", _name, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("blind", sa.Integer, nullable=False),
        sa.Column("overlap", sa.Integer, nullable=False),
        sa.Column("author", _name, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("queues_by_run", "queues", ["run_id"])
    op.create_table(
        "queue_items",
        sa.Column("queue_id", _name, sa.ForeignKey("queues.id"), nullable=False),
        sa.Column("person", _name, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("attempt_id", _id, sa.ForeignKey("attempts.id"), nullable=False),
        sa.PrimaryKeyConstraint("queue_id", "person", "position"),
    )
    op.create_index("queue_items_by_attempt", "queue_items", ["attempt_id"])
    op.create_index("queue_items_by_person", "queue_items", ["person"])


def _views() -> None:
    op.create_table(
        "views",
        sa.Column("id", _id, primary_key=True),
        sa.Column("author", _name, nullable=False),
        sa.Column("name", _name, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("shared", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_index("views_by_author", "views", ["author", "name"], unique=True)


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", _name, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("events", sa.Text, nullable=False),
        sa.Column("author", _name, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", _name, primary_key=True),
        sa.Column("webhook_id", _name, sa.ForeignKey("webhooks.id"), nullable=False),
        sa.Column("event", _name, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.Double),
        sa.Column("delivered_at", sa.Double),
        sa.Column("status", sa.Integer),
        sa.Column("error", sa.Text),
        sa.Column("body", sa.Text),
    )
    op.create_index("deliveries_by_webhook", "deliveries", ["webhook_id", "created_at"])
    op.create_index("deliveries_by_time", "deliveries", ["next_at"])
