"""The outbox: what webhooks are still to be told, written in the transaction of what happened."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Literal, get_args

from sqlalchemy import Connection, insert, select

from vivavoce.store.database.server_tables import deliveries, webhooks
from vivavoce.store.database.text import json_text

Event = Literal["run.finished", "label.saved", "comment.added"]
EVENTS: tuple[Event, ...] = get_args(Event)


def tell(connection: Connection, event: Event, about: Mapping[str, object]) -> None:
    """Have every webhook for an event told of it; `connection` is the one that writes what happened."""
    now = time.time()
    rows = [
        {
            "id": f"msg_{secrets.token_hex(12)}",
            "webhook_id": row.id,
            "event": event,
            "about": json_text(about),
            "created_at": now,
            "attempts": 0,
            "next_at": now,
        }
        for row in connection.execute(select(webhooks.c.id, webhooks.c.events))
        if event in json.loads(row.events)
    ]
    if rows:
        connection.execute(insert(deliveries), rows)
