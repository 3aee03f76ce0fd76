"""The tables of what was given to batch services; they belong to no run, and stay when one is deleted."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, Table

from vivavoce.store.database.server_tables import metadata
from vivavoce.store.database.text import Name, Text

batches = Table(
    "batches",
    metadata,
    Column("id", Name, primary_key=True),
    Column("run_id", Name, nullable=False),
    Column("model", Name, nullable=False),
    Column("identity", Name, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("file", Name),
    Column("service_id", Name),
    Column("strangers", Text, nullable=False),
    Column("ended_at", Double),
    Column("cause", Text),
    Index("batches_by_identity", "identity", "ended_at"),
)
"""A batch of requests: `file` and `service_id` are what the service calls its requests and itself, NULL until known.

`strangers` is JSON: batches of the service that were taken for it. `ended_at` is NULL until its answers are taken.
"""

batch_questions = Table(
    "batch_questions",
    metadata,
    Column("key", Name, primary_key=True),
    Column("batch_id", Name, nullable=False),
    Column("run_id", Name, nullable=False),
    Column("state", Name, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("answers", Integer, nullable=False),
    Column("failure", Text),
    Column("then", Name),
    Column("usage", Text),
    Index("batch_questions_by_batch", "batch_id"),
)
"""Each question, by the key of its reply, in the batch that it was last asked in; so none is in two at a time.

`state` is `asked`, `answered` or `failed`, `then` what can be done about a failed one. `usage` is JSON, NULL where it
is in a score or nothing was used.
"""
