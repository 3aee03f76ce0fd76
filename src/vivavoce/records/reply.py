"""`StoredReply`: what a model answered, kept under the hash of what it was asked."""

from __future__ import annotations

from typing import NamedTuple


class StoredReply(NamedTuple):
    """One reply as it is kept: `reply` is JSON text, `created_at` in seconds since the epoch."""

    key: str
    model: str
    reply: str
    created_at: float
