"""The audit log: who changed what, and when; written together with the change, never deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from sqlalchemy import Connection, insert, select

from vivavoce.store.browse.filter import encode_cursor, read_place
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import Database, values_of
from vivavoce.store.database.schema import audit, json_text


class AuditEntry(Listed):
    """An action of a user: `action` such as `label.set`, `subject` its object, `detail` everything else."""

    id: int
    at: float
    actor: str
    action: str
    subject: str
    detail: dict[str, JsonValue] | None = None


class AuditPage(Listed):
    """Some entries, newest first; `next` is the cursor of the next page, None if there is none."""

    entries: list[AuditEntry]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit log of a store."""

    database: Database

    def entries(self, after: str | None = None, limit: int = 50) -> AuditPage:
        """Return some entries of the log, newest first.

        Raises:
            UsageError: `after` is not a cursor of this list.
        """
        query = select(audit).order_by(audit.c.id.desc()).limit(limit + 1)
        if after is not None:
            query = query.where(audit.c.id < read_place(after, int)[0])
        with self.database.connected() as connection:
            found = connection.execute(query).all()
        page = [
            AuditEntry.model_validate({**values_of(row), "detail": row.detail and json.loads(row.detail)})
            for row in found[:limit]
        ]
        return AuditPage(entries=page, next=encode_cursor((page[-1].id,)) if len(found) > limit else None)


def note(
    connection: Connection, actor: str, action: str, subject: str, detail: Mapping[str, object] | None = None
) -> None:
    """Record a change in the transaction that makes it, so that neither is stored without the other.

    `connection` is one that writes; `detail` becomes JSON.
    """
    values = {"actor": actor, "action": action, "subject": subject, "detail": json_text(detail)}
    connection.execute(insert(audit).values(**values, at=time.time()))
