"""The page of webhooks: who receives events, and what came of the last messages; it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from vivavoce.server.pages.links import webhook_data
from vivavoce.server.pages.page import page
from vivavoce.server.pages.route import PageRoute
from vivavoce.server.state import store_of
from vivavoce.server.users import needs
from vivavoce.store.webhooks import Delivery, Webhook

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SHOWN = 10
"""Newest messages of a webhook on the page."""


@dataclass(frozen=True, slots=True)
class Told:
    """A webhook and its newest messages."""

    webhook: Webhook
    deliveries: list[Delivery]


@router.get("/webhooks", dependencies=[needs("admin")])
def webhooks(request: Request) -> Response:
    """Show the webhooks of the store and their newest messages. Requires the role admin."""
    store = store_of(request)
    told = [Told(one, store.webhooks.deliveries(one.id)[:SHOWN]) for one in store.webhooks.all()]
    return page("webhooks.html", {"section": "", "told": told, "json_link": webhook_data()})
