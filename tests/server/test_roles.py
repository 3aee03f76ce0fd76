"""Which role each route of the server takes: all of them are walked, so that a new one has to be decided upon."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute

from vivavoce.server.access import SAFE_METHODS
from vivavoce.server.app import routers
from vivavoce.store.access import ROLES, Role
from vivavoce.store.store import Store

from .live import Reply, send, serving

FOR_NOBODY = {("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out")}
"""What is answered without a token."""

TAKE: dict[tuple[str, str], Role] = {
    ("GET", "/jobs/new"): "write",
    ("GET", "/label/decide"): "write",
    ("GET", "/label/assign"): "write",
    ("GET", "/label/{queue}"): "write",
    ("GET", "/webhooks"): "admin",
    ("GET", "/api/v1/webhooks"): "admin",
    ("POST", "/api/v1/webhooks"): "admin",
    ("GET", "/api/v1/webhooks/{webhook}/deliveries"): "admin",
    ("DELETE", "/api/v1/webhooks/{webhook}"): "admin",
    ("GET", "/api/v1/audit"): "admin",
    ("DELETE", "/api/v1/runs/{run}"): "admin",
    ("GET", "/runs/{run}/delete"): "admin",
    ("POST", "/runs/{run}/delete"): "admin",
}
"""What takes another role than reading (GET) or writing (all others)."""

FORM = b"verdict=pass&action=undo&token=x"


@pytest.fixture
def routes() -> list[tuple[str, str]]:
    """Every method and path of the pages and of the API."""
    found = [route for router in routers() for route in router.routes]
    return [(method, one.path) for one in found if isinstance(one, APIRoute) for method in sorted(one.methods or ())]


@pytest.fixture
def door(store: Store) -> Iterator[str]:
    """A server that demands tokens."""
    with serving(store, demanded=True) as url:
        yield url


def ask(door: str, method: str, path: str, headers: dict[str, str]) -> Reply:
    """Send a request as a program sends it to the API, and a browser to a page; what it names is not there."""
    named = re.sub(r"\{(trial|place)\}", "1", re.sub(r"\{(run|job|queue|sample)(:path)?\}", "none", path))
    if method in SAFE_METHODS:
        return send(method, door + named, None, headers)
    if path.startswith("/api/"):
        return send(method, door + named, {}, headers)
    return send(method, door + named, FORM, {"content-type": "application/x-www-form-urlencoded", **headers})


def test_each_route_takes_the_role_that_it_should(door: str, store: Store, routes: list[tuple[str, str]]) -> None:
    wrong: list[str] = []
    for method, path in routes:
        needed = TAKE.get((method, path), "read" if method in SAFE_METHODS else "write")
        for role in ROLES:
            headers = {"authorization": f"Bearer {store.tokens.create(role, role)[1]}"}
            reply = ask(door, method, path, headers)
            refused = reply.status == 403 and "you need a token with the role" in reply.text
            lacks = ROLES.index(role) < ROLES.index(needed) and (method, path) not in FOR_NOBODY
            if refused != lacks:
                wrong.append(f"{method} {path} as {role}")
    assert (len(routes) > 45, wrong) == (True, [])


def test_nothing_but_signing_in_is_answered_without_a_token(door: str, routes: list[tuple[str, str]]) -> None:
    replies = {route: ask(door, *route, {}) for route in routes}
    led = {one for one, reply in replies.items() if reply.headers.get("location", "").startswith("/sign-in?next=")}
    assert {one for one in led if one[0] != "GET" or one[1].startswith("/api/")} == set()
    assert {one for one, reply in replies.items() if reply.status != 401} - led == FOR_NOBODY


def test_no_page_takes_a_form_without_its_key(server: str, routes: list[tuple[str, str]]) -> None:
    forms = [route for route in routes if route[0] not in SAFE_METHODS and not route[1].startswith("/api/")]
    replies = {path: ask(server, method, path, {}) for method, path in forms}
    assert len(forms) >= 8
    assert {path for path, reply in replies.items() if "This form is not accepted" not in reply.text} == set()


def test_nothing_is_written_for_a_page_elsewhere(server: str, routes: list[tuple[str, str]]) -> None:
    writing = [route for route in routes if route[0] not in SAFE_METHODS]
    elsewhere = ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "same-site"})
    for headers in elsewhere:
        told = {one: ask(server, *one, headers).text for one in writing}
        assert {one for one, text in told.items() if "must come from a page of this server" not in text} == set()


def test_keys_of_jobs_are_those_of_their_users(door: str, store: Store) -> None:
    talk = [{"role": "user", "content": "When do you open?"}, {"role": "assistant", "content": "At nine."}]
    job = {"kind": "evaluation", "conversations": [{"id": "a", "messages": talk}], "metrics": ["turn_count"]}
    tokens = [store.tokens.create(name, "write")[1] for name in ("ann", "bob")]
    headers = [{"authorization": f"Bearer {token}", "idempotency-key": "nightly"} for token in tokens]
    ids = [send("POST", f"{door}/api/v1/jobs", job, of_user).json()["id"] for of_user in (*headers, headers[0])]
    assert (ids[0] == ids[2], ids[0] == ids[1]) == (True, False)
