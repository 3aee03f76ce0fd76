from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.store.database.schema import deliveries, webhooks
from vivavoce.store.store import Store
from vivavoce.store.webhooks import FIRST_WAIT, LEASE, MOST_ATTEMPTS, UNREADABLE, Due, tell

URL = "https://hooks.example.org/viva"
LATER = 4e9
"""A time at which everything is due."""


def told(store: Store, number: int) -> list[str]:
    """Add a webhook with so many deliveries, and return their ids."""
    hook = store.webhooks.add(URL, actor="Ida")
    with store.database.writing() as connection:
        for at in range(number):
            tell(connection, "run.finished", {"run": f"run-{at}"})
    return [one.id for one in store.webhooks.deliveries(hook.id)]


def ids(taken: Sequence[Due]) -> list[str]:
    return [one.id for one in taken]


def test_a_delivery_is_taken_once_until_its_lease_ends(store: Store) -> None:
    expected = told(store, 3)
    first = store.webhooks.take(LATER, limit=2)
    rest = store.webhooks.take(LATER)
    assert (len(first), len(rest)) == (2, 1)
    assert {*ids(first), *ids(rest)} == set(expected)
    assert store.webhooks.take(LATER + LEASE - 1) == []
    assert len(store.webhooks.take(LATER + LEASE)) == 3


def test_servers_that_take_at_once_never_get_the_same(store: Store) -> None:
    expected = told(store, 40)
    together = threading.Barrier(4)

    def server(_: int) -> list[str]:
        mine: list[str] = []
        together.wait(10)
        while taken := store.webhooks.take(LATER, limit=3):
            mine += ids(taken)
        return mine

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(server, range(4)))
    found = [one for part in parts for one in part]
    assert len(found) == len(set(found))
    # a server that finds all rows locked leaves them to whoever locked them
    while taken := store.webhooks.take(LATER):
        found += ids(taken)
    assert sorted(found) == sorted(expected)


def test_every_attempt_has_the_same_body_and_waits_longer_until_it_is_given_up(store: Store) -> None:
    told(store, 1)
    now = LATER
    for attempt in range(MOST_ATTEMPTS):
        (due,) = store.webhooks.take(now)
        assert (due.attempts, due.body) == (attempt, "told" if attempt else None)
        assert due.about == {"run": "run-0"}
        store.webhooks.begin(due.id, "told")
        store.webhooks.end(due, now, status=503, error="answered 503", first_wait=FIRST_WAIT)
        now += FIRST_WAIT * 2**attempt
    assert store.webhooks.take(now + 10 * LEASE) == []
    (hook,) = store.webhooks.all()
    (found,) = store.webhooks.deliveries(hook.id)
    assert (found.attempts, found.status, found.next_at, found.delivered_at) == (MOST_ATTEMPTS, 503, None, None)


def test_a_removed_webhook_is_told_nothing_more(store: Store) -> None:
    told(store, 2)
    (hook,) = store.webhooks.all()
    assert store.webhooks.remove(hook.id, "Ida") == hook
    assert store.webhooks.take(LATER) == []
    for gone in (lambda: store.webhooks.remove(hook.id, "Ida"), lambda: store.webhooks.deliveries(hook.id)):
        with pytest.raises(NotFound, match=hook.id):
            gone()
    with pytest.raises(UsageError, match="name events"):
        store.webhooks.add(URL, [], actor="Ida")


def test_a_delivery_that_arrived_is_not_recorded_as_failed(store: Store) -> None:
    told(store, 1)
    (first,) = store.webhooks.take(LATER)
    (second,) = store.webhooks.take(LATER + LEASE)
    assert store.webhooks.end(first, LATER, status=200, error=None, first_wait=FIRST_WAIT)
    assert not store.webhooks.end(second, LATER, status=None, error="broken", first_wait=FIRST_WAIT)
    (hook,) = store.webhooks.all()
    (delivery,) = store.webhooks.deliveries(hook.id)
    assert (delivery.status, delivery.error, delivery.next_at) == (200, None, None)


def test_an_attempt_that_lost_its_lease_does_not_count_as_a_failure(store: Store) -> None:
    told(store, 1)
    (first,) = store.webhooks.take(LATER)
    (second,) = store.webhooks.take(LATER + LEASE)
    assert not store.webhooks.end(first, LATER, status=None, error="late", first_wait=FIRST_WAIT)
    assert store.webhooks.end(second, LATER, status=500, error="broken", first_wait=FIRST_WAIT)
    (hook,) = store.webhooks.all()
    assert [delivery.error for delivery in store.webhooks.deliveries(hook.id)] == ["broken"]


def test_what_cannot_be_read_of_webhooks_costs_only_itself(store: Store) -> None:
    (broken, *whole) = told(store, 3)
    with store.database.writing() as connection:
        connection.execute(update(deliveries).where(deliveries.c.id == broken).values(about="{"))
        row = {"id": "wh_x", "url": URL, "secret": "", "events": "{", "author": "x", "created_at": 1.0}
        connection.execute(insert(webhooks).values(row))
        tell(connection, "run.finished", {"run": "next"})
    first, other = sorted(store.webhooks.all(), key=lambda webhook: webhook.id == "wh_x")
    assert (other.id, other.events) == ("wh_x", [])
    assert len(store.webhooks.take(LATER)) == len(whole) + 1
    by_id = {delivery.id: delivery for delivery in store.webhooks.deliveries(first.id)}
    assert (by_id[broken].error, by_id[broken].next_at) == (UNREADABLE, None)
