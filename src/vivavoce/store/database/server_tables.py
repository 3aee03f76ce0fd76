"""The tables of servers: tokens, views, webhooks, watches, jobs and what servers share; `schema` has the others."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, MetaData, PrimaryKeyConstraint, Table

from vivavoce.store.database.text import Name, Text

BigId = BigInteger().with_variant(Integer, "sqlite")
"""63 bits; in SQLite only a column called INTEGER is the row's own number."""

metadata = MetaData()

views = Table(
    "views",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("author", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("path", Text, nullable=False),
    Column("shared", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Index("views_by_author", "author", "name", unique=True),
)
"""Addresses of pages that people keep under a name; `shared` is 1 where everybody sees one."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Name, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("author", Name, nullable=False),
    Column("created_at", Double, nullable=False),
)
"""Addresses that are told of `events`, a JSON list; the secret signs what is sent, so it is kept as it is."""

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Name, primary_key=True),
    Column("webhook_id", Name, ForeignKey("webhooks.id"), nullable=False),
    Column("event", Name, nullable=False),
    Column("about", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Double),
    Column("delivered_at", Double),
    Column("status", Integer),
    Column("error", Text),
    Column("body", Text),
    Index("deliveries_by_webhook", "webhook_id", "created_at"),
    Index("deliveries_by_time", "next_at"),
)
"""What webhooks are told; `next_at` is when the next attempt is due, NULL when it arrived or was given up."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", Name, primary_key=True),
    Column("digest", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("role", Name, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Index("tokens_by_digest", "digest", unique=True),
)
"""Who may use a server of this store; of a token only its hash is kept."""

watches = Table(
    "watches",
    metadata,
    Column("name", Name, primary_key=True),
    Column("heard_at", Double, nullable=False),
    Column("state", Text, nullable=False),
)
"""What watches production, when it was last heard of, and how it is doing, as JSON."""

watch_hours = Table(
    "watch_hours",
    metadata,
    Column("watch", Name, nullable=False),
    Column("hour", BigInteger, nullable=False),
    Column("figures", Text, nullable=False),
    PrimaryKeyConstraint("watch", "hour"),
)
"""What came in and what was judged in an hour, which begins at so many seconds since the epoch, as JSON."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", Name, primary_key=True),
    Column("folder", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("status", Name, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("suite", Text),
    Column("run", Name),
    Column("grading", Name),
    Column("planned", BigInteger),
    Column("done", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("verdict", Name),
    Column("detail", Text),
    Column("request", Text),
    Column("key", Name),
    Column("body", Name, nullable=False),
    Column("new_run", Name),
    Column("starts", Integer, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("cost", Double, nullable=False),
    Column("cancels", Integer, nullable=False),
    Column("owner", Name),
    Column("lease_until", Double, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("holds", Name),
    Index("jobs_by_time", "created_at", "id"),
    Index("jobs_by_status", "status", "created_at"),
    Index("jobs_by_run", "run"),
    Index("jobs_by_hold", "holds"),
    Index("jobs_by_key", "folder", "key", unique=True),
)
"""Jobs of servers. `request` is NULL once nobody is to continue the job; `key` and `body` are hashes.

`owner` is the server that works on it, until `lease_until`; each claim raises `fence`, and who has an older number may
not write any more. `holds` is the run that it works on now, `new_run` the id of the run that it begins.
"""

job_events = Table(
    "job_events",
    metadata,
    Column("job_id", Name, ForeignKey("jobs.id"), nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "last"),
)
"""The newest events of jobs as JSON, several in a row; `last` is the number of the last one of them."""

job_inputs = Table(
    "job_inputs",
    metadata,
    Column("job_id", Name, ForeignKey("jobs.id"), primary_key=True),
    Column("content", Text, nullable=False),
)
"""The conversations that came with a request, as JSON lines, until the job is finished."""

rate_limits = Table(
    "rate_limits",
    metadata,
    Column("client", Name, primary_key=True),
    Column("left", Double, nullable=False),
    Column("at", Double, nullable=False),
    Index("rate_limits_by_time", "at"),
)
"""Requests that a client has left at a time, for all servers together."""

server_secrets = Table(
    "server_secrets",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Name, nullable=False),
)
"""Random values that all servers of a store share, and the sessions of browsers, by the hash of their ids."""
