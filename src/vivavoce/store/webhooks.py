"""The outbox: what webhooks are still to be told, written in the transaction of what happened."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, delete, insert, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.store.audit import note
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import AnyRow, Database, now_in, values_of
from vivavoce.store.database.schema import deliveries, json_text, webhooks

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
        }
        for row in connection.execute(select(webhooks.c.id, webhooks.c.events))
        if event in _events_of(row.events)
    ]
    if rows:
        connection.execute(insert(deliveries).values(next_at=now_in(connection)), rows)


def _events_of(text: object) -> list[Event]:
    """Return the events of a webhook, none where they cannot be read."""
    try:
        return _EVENTS.validate_json(cast("str", text))
    except ValidationError:
        return []


_EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])

SECRET = "whsec_"
LEASE = 120.0
"""Seconds after which a delivery that a server began, and never ended, is made again."""
MOST_ATTEMPTS = 10
FIRST_WAIT = 5.0
"""Seconds until the second attempt; each further wait is twice as long."""
_LISTED = 100


class Webhook(Listed):
    """An address that receives events; its secret is shown once."""

    id: str
    url: str
    events: list[Event]
    author: str
    created_at: float


class NewWebhook(Webhook):
    """A webhook with the secret that signs what is sent to it."""

    secret: str


class Delivery(Listed):
    """One event for one webhook; `next_at` is the time of the next attempt, None when it arrived or was given up.

    `status` is the HTTP status of the last attempt, `error` why it failed.
    """

    id: str
    webhook_id: str
    event: Event
    created_at: float
    attempts: int
    next_at: float | None = None
    delivered_at: float | None = None
    status: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery to be made now; `body` is that of earlier attempts, None at the first."""

    id: str
    url: str
    secret: str
    event: Event
    about: dict[str, object]
    created_at: float
    attempts: int
    body: str | None
    lease_until: float


_DUE = TypeAdapter(Due)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks of a store."""

    database: Database

    def add(self, url: str, events: Sequence[Event] = EVENTS, *, actor: str, secret: str | None = None) -> NewWebhook:
        """Store a webhook; the caller has checked its address. Without a secret, one is made.

        Raises:
            UsageError: there are no events, or the secret is not `whsec_` and 24 to 64 bytes in base64.
            StoreError: the store cannot be written.
        """
        if not events:
            raise UsageError(f"name events: {', '.join(EVENTS)}")
        secret = secret or SECRET + base64.b64encode(secrets.token_bytes(32)).decode()
        key_of(secret)
        made = NewWebhook(
            id=f"wh_{secrets.token_hex(6)}",
            url=url,
            events=list(dict.fromkeys(events)),
            author=actor,
            created_at=time.time(),
            secret=secret,
        )
        values = {**made.model_dump(), "events": json.dumps(made.events)}
        with self.database.writing() as connection:
            connection.execute(insert(webhooks).values(values))
            note(connection, actor, "webhook.add", made.id, {"url": url, "events": made.events})
        return made

    def all(self) -> list[Webhook]:
        """Return the webhooks, oldest first."""
        with self.database.connected() as connection:
            rows = connection.execute(select(webhooks).order_by(webhooks.c.created_at, webhooks.c.id)).all()
        return [_webhook(row) for row in rows]

    def remove(self, webhook_id: str, actor: str) -> Webhook:
        """Remove a webhook with its deliveries, and return it.

        Raises:
            UsageError: there is none of that id.
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            row = connection.execute(select(webhooks).where(webhooks.c.id == webhook_id)).first()
            if row is None:
                raise NotFound("webhook", webhook_id)
            connection.execute(delete(deliveries).where(deliveries.c.webhook_id == webhook_id))
            connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))
            note(connection, actor, "webhook.remove", webhook_id, {"url": row.url})
        return _webhook(row)

    def deliveries(self, webhook_id: str) -> list[Delivery]:
        """Return the newest hundred deliveries of a webhook, newest first.

        Raises:
            UsageError: there is none of that id.
        """
        d = deliveries.c
        query = select(*(d[name] for name in Delivery.model_fields)).where(d.webhook_id == webhook_id)
        with self.database.connected() as connection:
            if connection.execute(select(webhooks.c.id).where(webhooks.c.id == webhook_id)).first() is None:
                raise NotFound("webhook", webhook_id)
            rows = connection.execute(query.order_by(d.created_at.desc(), d.id).limit(_LISTED)).all()
        return [_delivery(row) for row in rows]

    def waiting(self) -> list[str]:
        """Return the ids of the webhooks that have a delivery to be made now."""
        d = deliveries.c
        with self.database.connected() as connection:
            query = select(d.webhook_id).where(d.next_at <= now_in(connection)).distinct()
            return list(connection.execute(query).scalars())

    def take(self, now: float | None = None, limit: int = 10, *, webhook: str | None = None) -> list[Due]:
        """Return deliveries to be made now; no other server gets them before the lease ends.

        `now` is the time of the database, unless it is given. With `webhook`, take only those of this one. One that
        cannot be read is given up.
        """
        d = deliveries.c
        mine = [] if webhook is None else [d.webhook_id == webhook]
        with self.database.connected() as connection:
            time_now = now_in(connection) if now is None else now
            query = select(d.id).where(d.next_at <= time_now, *mine).order_by(d.next_at).limit(limit)
            if connection.execute(query).first() is None:
                return []
        with self.database.writing() as connection:
            ids = connection.execute(query.with_for_update(skip_locked=True)).scalars().all()
            connection.execute(update(deliveries).where(d.id.in_(ids)).values(next_at=time_now + LEASE))
            full = select(d.id, webhooks.c.url, webhooks.c.secret, d.event, d.about, d.created_at, d.attempts, d.body)
            full = full.add_columns(d.next_at.label("lease_until"))
            full = full.join(webhooks, webhooks.c.id == d.webhook_id).where(d.id.in_(ids)).order_by(d.created_at)
            rows = connection.execute(full).all()
            due = [(row, _due(row)) for row in rows]
            broken = [row.id for row, delivery in due if delivery is None]
            given_up = {"next_at": None, "error": UNREADABLE}
            connection.execute(update(deliveries).where(d.id.in_(broken)).values(given_up))
        return [delivery for _, delivery in due if delivery is not None]

    def begin(self, delivery_id: str, body: str) -> None:
        """Keep the body of a delivery, so that every attempt sends the same."""
        with self.database.writing() as connection:
            connection.execute(update(deliveries).where(deliveries.c.id == delivery_id).values(body=body))

    def end(
        self, due: Due, now: float | None = None, *, status: int | None, error: str | None, first_wait: float
    ) -> bool:
        """Record an attempt, and return whether it counts: without an `error` it arrived, else it is made again later.

        An attempt that failed counts only while the lease lasts: another server may have delivered the message since.
        """
        d = deliveries.c
        attempts = due.attempts + 1
        again = error is not None and attempts < MOST_ATTEMPTS
        conditions = [d.delivered_at.is_(None)]
        if error is not None:
            conditions += [d.attempts == due.attempts, d.next_at == due.lease_until]
        with self.database.writing() as connection:
            time_now = now_in(connection) if now is None else now
            values = {
                "attempts": attempts,
                "status": status,
                "error": error,
                "delivered_at": None if error is not None else time_now,
                "next_at": time_now + first_wait * 2.0**due.attempts if again else None,
            }
            return connection.execute(update(deliveries).where(d.id == due.id, *conditions).values(values)).rowcount > 0


UNREADABLE = "what is stored of it cannot be read"
"""The error of a delivery whose row has values that vivavoce does not write."""


def _due(row: AnyRow) -> Due | None:
    """Return a delivery from its row, None where that cannot be read."""
    try:
        return _DUE.validate_python({**values_of(row), "about": json.loads(row.about)})
    except (ValueError, TypeError):
        return None


def _delivery(row: AnyRow) -> Delivery:
    """Return a delivery for a list; one that cannot be read has nothing but its ids and an error."""
    try:
        return Delivery.model_validate(values_of(row))
    except ValidationError:
        event = row.event if row.event in EVENTS else EVENTS[0]
        return Delivery(
            id=str(row.id), webhook_id=row.webhook_id, event=event, created_at=0.0, attempts=0, error=UNREADABLE
        )


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for.

    Raises:
        UsageError: it is not `whsec_` and 24 to 64 bytes in base64.
    """
    try:
        key = base64.b64decode(secret.removeprefix(SECRET), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(SECRET) or not 24 <= len(key) <= 64:
        raise UsageError(f"a webhook secret must be {SECRET} and 24 to 64 bytes in base64")
    return key


def _webhook(row: AnyRow) -> Webhook:
    """Return a webhook from its row; one that cannot be read has no events."""
    values = {**values_of(row), "events": _events_of(row.events)}
    try:
        return Webhook.model_validate({name: values[name] for name in Webhook.model_fields})
    except ValidationError:
        return Webhook(id=str(row.id), url=UNREADABLE, events=[], author="", created_at=0.0)
