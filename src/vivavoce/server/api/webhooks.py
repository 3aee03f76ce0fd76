"""Webhooks: addresses that receive events, and what was sent to them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from vivavoce.server.api.answers import ERRORS, answer
from vivavoce.server.api.strict import StrictRoute
from vivavoce.server.state import policy_of, store_of
from vivavoce.server.users import needs, user_of
from vivavoce.store.webhooks import EVENTS, Delivery, Event, NewWebhook, Webhook
from vivavoce.wire.outward import check_outward

router = APIRouter(
    prefix="/api/v1", tags=["webhooks"], route_class=StrictRoute, responses=ERRORS, dependencies=[needs("admin")]
)

WebhookId = Annotated[str, Path(description="The id of a webhook.")]


class WebhookToAdd(BaseModel):
    """An address to be told of events, by default of all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, Field(max_length=2000)]
    events: list[Event] = list(EVENTS)


@router.get("/webhooks", response_model=list[Webhook])
def webhooks(request: Request) -> Response:
    """Return the webhooks without their secrets. Requires the role admin."""
    return answer(store_of(request).webhooks.all())


@router.post("/webhooks", response_model=NewWebhook, status_code=201)
def add(request: Request, body: WebhookToAdd) -> Response:
    """Add a webhook; the answer has its secret, which is not shown again. Requires the role admin."""
    check_outward(body.url, private=policy_of(request).private_webhooks)
    return answer(store_of(request).webhooks.add(body.url, body.events, actor=user_of(request).name), 201)


@router.get("/webhooks/{webhook}/deliveries", response_model=list[Delivery])
def deliveries(request: Request, webhook: WebhookId) -> Response:
    """Return the newest hundred deliveries of a webhook with their attempts. Requires the role admin."""
    return answer(store_of(request).webhooks.deliveries(webhook))


@router.delete("/webhooks/{webhook}", response_model=Webhook)
def remove(request: Request, webhook: WebhookId) -> Response:
    """Remove a webhook with its deliveries, and return it. Requires the role admin."""
    return answer(store_of(request).webhooks.remove(webhook, user_of(request).name))
