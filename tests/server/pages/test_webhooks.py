from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from sqlalchemy import update

from vivavoce.store.access import ROLES
from vivavoce.store.database.schema import deliveries, json_text
from vivavoce.store.store import Store
from vivavoce.store.webhooks import MOST_ATTEMPTS, tell

from ..live import get, serving
from .cases import Elements
from .hostile import TEXTS

LATER = 3e9
"""A time at which the server of a test, which sends what is due, does not live any more."""


def tells(store: Store, number: int = 1) -> None:
    with store.database.writing() as connection:
        for at in range(number):
            tell(connection, "run.finished", {"run": json_text(at)})
        connection.execute(update(deliveries).values(next_at=LATER))


def test_an_admin_sees_who_is_told_and_what_came_of_it(empty: Store, url: str) -> None:
    hook = empty.webhooks.add("https://hooks.example.org/viva", ["run.finished"], actor="Ida")
    empty.webhooks.add("https://other.example.org/", ["label.saved"], actor="Ida")
    tells(empty, 4)
    for status, error, first_wait in ((204, None, 1.0), (503, "answered 503", 1e9), (None, "gone", 1.0)):
        (due,) = empty.webhooks.take(4e9, limit=1)
        due = replace(due, attempts=MOST_ATTEMPTS - 1) if error == "gone" else due
        empty.webhooks.end(due, 4e9, status=status, error=error, first_wait=first_wait)
    page = Elements(get(f"{url}/webhooks").text)
    assert hook.url in page.text
    for word in (
        "arrived",
        "is tried again",
        "answered 503",
        "waits",
        "receives run.finished",
        "It has not received any event",
    ):
        assert word in page.text, word
    assert hook.secret not in get(f"{url}/webhooks").text
    assert not [found for tag, found in page.tags if tag == "form" and found.get("method") == "post"]
    assert "/webhooks" in Elements(get(f"{url}/jobs").text).having("href")


def test_only_the_newest_messages_are_shown(empty: Store, url: str) -> None:
    assert "No webhooks" in get(f"{url}/webhooks").text
    empty.webhooks.add("https://hooks.example.org/viva", actor="Ida")
    tells(empty, 12)
    assert get(f"{url}/webhooks").text.count("msg_") == 10


def test_nobody_but_an_admin_sees_them(empty: Store) -> None:
    with serving(empty, demanded=True) as url:
        for role, status in zip(ROLES, (403, 403, 200), strict=True):
            _, secret = empty.tokens.create(role, role)
            bearer = {"authorization": f"Bearer {secret}"}
            assert get(f"{url}/webhooks", bearer).status == status
            shown = "/webhooks" in Elements(get(f"{url}/jobs", bearer).text).having("href")
            assert shown == (role == "admin")
            assert ("/webhooks" in Elements(get(f"{url}/sign-in", bearer).text).having("href")) == shown


def test_hostile_addresses_and_errors_stay_text(empty: Store, url: str) -> None:
    for text in TEXTS:
        empty.webhooks.add(f"https://hooks.example.org/?{quote(text[:5])}{text}", actor=text)
    tells(empty)
    for due in empty.webhooks.take(4e9, limit=1000):
        empty.webhooks.end(due, 4e9, status=500, error=TEXTS[0], first_wait=1.0)
    text = get(f"{url}/webhooks").text
    assert "<script>xss" not in text
    assert not [found for _, found in Elements(text).tags if any(key.startswith("on") for key in found)]
