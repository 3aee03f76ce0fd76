from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from starlette.datastructures import Headers
from starlette.types import Scope

from vivavoce.server.authenticator import COOKIE, Authenticator
from vivavoce.server.users import User
from vivavoce.store.access import Role, digest_of
from vivavoce.store.store import Store

from .live import cookie_of, get, send, serving

TALK = {"messages": [{"role": "user", "content": "hi"}], "metrics": ["turn_count"]}


class Door(NamedTuple):
    """A server that demands tokens, and its store."""

    url: str
    store: Store

    def token(self, role: Role, name: str = "ida") -> dict[str, str]:
        """Return the header of somebody new."""
        return {"authorization": f"Bearer {self.store.tokens.create(name, role)[1]}"}


@pytest.fixture
def door(store: Store) -> Iterator[Door]:
    """A server that demands tokens."""
    with serving(store, demanded=True) as url:
        yield Door(url, store)


def allowed(door: Door, headers: dict[str, str]) -> tuple[int, int, int]:
    """Return what comes of reading, of writing, and of looking after the server."""
    return (
        get(f"{door.url}/api/v1/runs", headers).status,
        send("POST", f"{door.url}/api/v1/evaluations", TALK, headers).status,
        get(f"{door.url}/api/v1/audit", headers).status,
    )


def test_a_role_may_do_what_those_before_it_may(door: Door) -> None:
    assert allowed(door, door.token("read")) == (200, 403, 403)
    assert allowed(door, door.token("write")) == (200, 200, 403)
    assert allowed(door, door.token("admin")) == (200, 200, 200)
    assert allowed(door, {}) == (401, 401, 401)


def test_whoever_may_not_is_told_what_it_takes(door: Door) -> None:
    token = door.token("read", "bo")
    told = send("POST", f"{door.url}/api/v1/evaluations", TALK, token).json()["detail"]
    assert told == "bo may look at what is here; to label and start jobs you need a token with the role write"
    page = get(f"{door.url}/runs/latest/delete", token)
    assert (page.status, "you need a token with the role admin" in page.text) == (403, True)


def test_a_token_that_is_revoked_is_refused_at_once(door: Door) -> None:
    made, secret = door.store.tokens.create("ida", "read")
    headers = {"authorization": f"Bearer {secret}"}
    assert get(f"{door.url}/api/v1/runs", headers).status == 200
    door.store.tokens.revoke(made.id)
    assert get(f"{door.url}/api/v1/runs", headers).status == 401


def test_a_token_whose_time_is_over_is_refused(door: Door) -> None:
    _, secret = door.store.tokens.create("ida", "admin", expires_at=time.time() - 1)
    assert get(f"{door.url}/api/v1/runs", {"authorization": f"Bearer {secret}"}).status == 401


def test_the_secret_of_the_environment_may_do_everything_and_tokens_are_good_beside_it(store: Store) -> None:
    with serving(store, token="opensesame") as url:
        door = Door(url, store)
        assert allowed(door, {"authorization": "Bearer opensesame"}) == (200, 200, 200)
        assert allowed(door, door.token("read")) == (200, 403, 403)


def test_where_no_token_is_demanded_whoever_sits_here_may_do_everything(server: str, store: Store) -> None:
    door = Door(server, store)
    assert allowed(door, {}) == (200, 200, 200)
    assert allowed(door, {"cookie": f"{COOKIE}=nonsense"}) == (200, 200, 200)
    assert allowed(door, {"authorization": "Bearer nonsense"}) == (401, 401, 401)


def asked(headers: dict[str, str], method: str = "GET") -> Scope:
    """Return a request as the server hands it on."""
    return {
        "type": "http",
        "method": method,
        "path": "/api/v1/runs",
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


async def answered(authenticator: Authenticator, headers: dict[str, str], method: str = "GET") -> tuple[int, str]:
    """Return how a request is answered, and when it may be made again; 200 where it is let in."""
    scope = asked(headers, method)
    found = await authenticator.admit(scope, Headers(scope=scope), writes=method != "GET")
    return (200, "") if isinstance(found, User) else (found.status_code, found.headers.get("retry-after", ""))


def bearer(secret: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}", **more}


async def test_after_ten_wrong_guesses_an_address_waits(store: Store) -> None:
    clock = [0.0]
    authenticator = Authenticator(store, digest_of("opensesame"), clock=lambda: clock[0])
    found = [await answered(authenticator, bearer(f"guess {number}")) for number in range(11)]
    assert found == [(401, "")] * 9 + [(429, "6")] * 2
    assert await answered(authenticator, bearer("opensesame")) == (429, "6")
    clock[0] += 6.5
    assert await answered(authenticator, bearer("opensesame")) == (200, "")


@pytest.mark.parametrize(("proxied", "statuses"), [(False, {401, 429}), (True, {401})])
async def test_only_a_proxy_that_was_announced_says_whom_a_guess_is_from(
    store: Store, proxied: bool, statuses: set[int]
) -> None:
    authenticator = Authenticator(store, digest_of("opensesame"), proxied=proxied, clock=lambda: 0.0)
    found = {
        (await answered(authenticator, bearer("guess", **{"x-forwarded-for": f"192.0.2.1, 198.51.100.{number}"})))[0]
        for number in range(50)
    }
    assert found == statuses


async def test_nobody_is_shut_out_by_the_guesses_of_others_at_the_same_address(store: Store) -> None:
    authenticator = Authenticator(store, clock=lambda: 0.0)
    for number in range(20):
        await answered(authenticator, bearer(f"guess {number}"))
    assert await answered(authenticator, bearer(store.tokens.create("ida", "read")[1])) == (200, "")


async def test_coming_without_a_token_is_no_guess(store: Store) -> None:
    authenticator = Authenticator(store, clock=lambda: 0.0)
    assert {await answered(authenticator, {}) for _ in range(200)} == {(401, "")}
    assert await answered(authenticator, {}) == (429, "1")


@pytest.mark.parametrize(("method", "burst"), [("GET", 200), ("POST", 100)])
async def test_one_token_may_not_ask_without_end_and_others_still_may(store: Store, method: str, burst: int) -> None:
    authenticator = Authenticator(store, clock=lambda: 0.0)
    busy, calm = (bearer(store.tokens.create("ida", "write")[1]) for _ in "ab")
    assert {await answered(authenticator, busy, method) for _ in range(burst)} == {(200, "")}
    assert await answered(authenticator, busy, method) == (429, "1")
    assert await answered(authenticator, calm, method) == (200, "")


def test_what_others_at_this_address_keep_in_the_browser_hides_no_token(door: Door) -> None:
    _, secret = door.store.tokens.create("ida", "read")
    kept = f'theirs={{"a": "b"}}; {cookie_of(door.store, secret)}; also="c'
    assert get(f"{door.url}/", {"cookie": kept}).status == 200


def test_a_person_without_a_token_is_led_to_where_one_signs_in_and_back(door: Door) -> None:
    reply = get(f"{door.url}/runs/a%2Fb?filter=state:error&sort=worst")
    assert reply.status == 303
    assert reply.headers["location"] == "/sign-in?next=/runs/a%252Fb%3Ffilter%3Dstate%3Aerror%26sort%3Dworst"
    assert "set-cookie" not in reply.headers


def test_a_browser_lets_go_of_a_token_that_is_good_no_longer(door: Door) -> None:
    reply = get(f"{door.url}/", {"cookie": f"{COOKIE}=old"})
    assert (reply.status, reply.headers["location"]) == (303, "/sign-in?next=/")
    assert reply.headers["set-cookie"].startswith(f"{COOKIE}=; Max-Age=0")


def test_what_makes_a_page_look_as_it_does_needs_no_token(door: Door) -> None:
    assert get(f"{door.url}/static/vv.css").status == 200
    assert get(f"{door.url}/static/../api/v1/runs").status in (401, 404)
    assert get(f"{door.url}/openapi.json").status == 401


def test_wrong_tokens_are_counted_for_all_servers_of_a_store(store: Store) -> None:
    with serving(store, demanded=True) as one, serving(store, demanded=True) as other:
        wrong = {"authorization": "Bearer wrong"}
        assert [get(f"{one}/api/v1/runs", wrong).status for _ in range(11)] == [*[401] * 9, 429, 429]
        assert [get(f"{other}/api/v1/runs", wrong).status for _ in range(3)][1:] == [429, 429]


def test_a_form_of_one_server_is_answered_by_another(store: Store) -> None:
    with serving(store) as one, serving(store) as other:
        match = re.search(r'name="form_key" value="([^"]+)"', get(f"{one}/sign-in").text)
        assert match is not None
        sent = send(
            "POST",
            f"{other}/sign-out",
            f"form_key={match[1]}".encode(),
            {"content-type": "application/x-www-form-urlencoded"},
        )
    assert sent.status == 303
