"""The tables, as the newest migration leaves them; types and constraints are those SQLite and PostgreSQL share.

JSON is text that we encode, so that both databases give back what was given. Times are seconds since the epoch.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

HEAD = "0003"
"""The newest migration; versions are ordered as text."""

BigId = BigInteger().with_variant(Integer, "sqlite")
"""63 bits; in SQLite only a column called INTEGER is the row's own number."""

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("suite", String, nullable=False),
    Column("spec", Text, nullable=False),
    Column("base", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("version", String, nullable=False),
    Index("runs_by_time", "started_at"),
)

gradings = Table(
    "gradings",
    metadata,
    Column("id", String, primary_key=True),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("spec", Text, nullable=False),
    Column("fingerprints", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("verdict", String),
    Column("summary", Text),
    Index("gradings_by_run", "run_id"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=False),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("sample_id", String, nullable=False),
    Column("target", String, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("scenario", String, nullable=False),
    Column("session_id", String),
    Column("started_at", Double, nullable=False),
    Column("seconds", Double),
    Column("sample", Text, nullable=False),
    Column("opening", Text),
    Column("state", Text),
    Column("failure", Text),
    Column("usage", Text),
    Column("test", Text),
    UniqueConstraint("run_id", "sample_id", "target", "trial", name="attempts_by_key"),
    Index("attempts_by_run", "run_id", "position", "id"),
)
"""`position` is the place in the plan of the run.

`opening` is NULL for none, `usage` the sum over the turns, NULL when no turn tells, `test` what a tester leaves.
"""

turns = Table(
    "turns",
    metadata,
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("idx", Integer, nullable=False),
    Column("started_at", Double),
    Column("seconds", Double),
    Column("messages", Text, nullable=False),
    Column("usage", Text),
    Column("failure", Text),
    PrimaryKeyConstraint("attempt_id", "idx"),
)
"""A message is stored once: in its turn, or in the opening of its attempt."""

scores = Table(
    "scores",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("attempt_id", BigId, ForeignKey("attempts.id"), nullable=False),
    Column("grading_id", String, ForeignKey("gradings.id"), nullable=False),
    Column("kind", String, nullable=False),
    Column("name", String, nullable=False),
    Column("turn", Integer),
    Column("turns", Integer),
    Column("state", String, nullable=False),
    Column("value", Double),
    Column("rationale", Text),
    Column("submission", Text),
    Column("ground_truth", Text),
    Column("metadata", Text),
    Column("failure", Text),
    Column("usage", Text),
    Column("fingerprint", String),
    CheckConstraint("(state = 'scored') = (value IS NOT NULL)", name="scored_has_value"),
)
"""`turn` is NULL for the whole conversation; such a row counts in `turns` how many turns were graded apart."""

Index(
    "scores_by_attempt",
    scores.c.attempt_id,
    scores.c.grading_id,
    scores.c.kind,
    scores.c.name,
    func.coalesce(scores.c.turn, text("-1")),
    unique=True,
)
Index(
    "scores_by_value",
    scores.c.name,
    scores.c.grading_id,
    scores.c.value,
    sqlite_where=scores.c.turn.is_(None),
    postgresql_where=scores.c.turn.is_(None),
)

replies = Table(
    "replies",
    metadata,
    Column("key", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("reply", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)
"""Replies of models by the hash of what was asked; they belong to no run, and any may be deleted."""
