from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from vivavoce.server.authenticator import COOKIE, SECURE_COOKIE
from vivavoce.server.pages.sign_in import local
from vivavoce.store.store import Store

from ..live import Reply, cookie_of, get, send, serving
from .cases import Elements

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def door(store: Store) -> Iterator[str]:
    """The address of a server that demands tokens."""
    with serving(store, demanded=True) as url:
        yield url


def fields(page: Reply) -> dict[str, str]:
    """Return the hidden fields of a page."""
    hidden = [found for tag, found in Elements(page.text).tags if tag == "input" and found.get("type") == "hidden"]
    return {found["name"]: found["value"] for found in hidden}


def submit(url: str, given: dict[str, str], cookie: str = "") -> Reply:
    """Send a form."""
    return send("POST", url, urlencode(given).encode(), {**FORM, **({"cookie": cookie} if cookie else {})})


def test_a_token_given_once_is_kept_by_the_browser_out_of_reach_of_scripts(door: str, store: Store) -> None:
    _, secret = store.tokens.create("Ida", "write")
    page = get(f"{door}/sign-in?next=/runs/latest")
    reply = submit(f"{door}/sign-in", {**fields(page), "token": f" {secret}\n"})
    assert (reply.status, reply.headers["location"]) == (303, "/runs/latest")
    cookie, *attributes = reply.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"{COOKIE}=")
    assert secret not in reply.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {*attributes}
    shown = get(f"{door}/runs/latest", {"cookie": cookie})
    assert (shown.status, "Ida (write)" in shown.text) == (200, True)


def test_behind_a_proxy_with_tls_the_cookie_goes_no_other_way(store: Store) -> None:
    _, secret = store.tokens.create("Ida", "write")
    with serving(store, demanded=True, public="https://viva.example.org") as url:
        reply = submit(f"{url}/sign-in", {**fields(get(f"{url}/sign-in")), "token": secret})
        cookie, *attributes = reply.headers["set-cookie"].split("; ")
        assert cookie.startswith(f"{SECURE_COOKIE}=")
        assert {"Secure", "Path=/"} <= {*attributes}
        assert not [attribute for attribute in attributes if attribute.startswith("Domain")]
        headers = {"host": "viva.example.org"}
        assert get(f"{url}/runs/latest", {**headers, "cookie": cookie}).status == 200
        plain = cookie.replace(SECURE_COOKIE, COOKIE)
        assert get(f"{url}/runs/latest", {**headers, "cookie": plain}).status == 303


@pytest.mark.parametrize("secret", ["open sesame; Path=/x", 'a"b%41', "é"])
def test_any_secret_of_the_environment_can_be_given(store: Store, secret: str) -> None:
    with serving(store, token=secret) as url:
        reply = submit(f"{url}/sign-in", {**fields(get(f"{url}/sign-in")), "token": secret})
        cookie = reply.headers["set-cookie"].partition(";")[0]
        assert get(f"{url}/", {"cookie": cookie}).status == 200


def test_a_wrong_token_is_said_to_be_and_the_way_is_kept(door: str) -> None:
    page = get(f"{door}/sign-in?next=/trends")
    reply = submit(f"{door}/sign-in", {**fields(page), "token": "wrong"})
    assert (reply.status, "Token invalid or expired" in reply.text) == (401, True)
    assert fields(reply)["next"] == "/trends"
    assert "set-cookie" not in reply.headers


def test_guessing_comes_to_an_end(door: str) -> None:
    known = fields(get(f"{door}/sign-in"))
    assert 429 in {submit(f"{door}/sign-in", {**known, "token": str(number)}).status for number in range(15)}


def test_whoever_signs_out_is_forgotten_by_the_browser(door: str, store: Store) -> None:
    cookie = cookie_of(store, store.tokens.create("Ida", "read")[1])
    page = get(f"{door}/sign-in", {"cookie": cookie})
    assert "You are Ida" in page.text
    reply = submit(f"{door}/sign-out", fields(page), cookie)
    assert (reply.status, reply.headers["set-cookie"].startswith(f"{COOKIE}=; Max-Age=0")) == (303, True)
    assert get(f"{door}/api/v1/runs", {"cookie": cookie}).status == 401


def test_a_session_ends_with_its_token(door: str, store: Store) -> None:
    token, secret = store.tokens.create("Ida", "read")
    cookie = {"cookie": cookie_of(store, secret)}
    assert get(f"{door}/api/v1/runs", cookie).status == 200
    store.tokens.revoke(token.id)
    assert get(f"{door}/api/v1/runs", cookie).status == 401


def test_the_token_itself_is_no_cookie(door: str, store: Store) -> None:
    secret = store.tokens.create("Ida", "read")[1]
    assert get(f"{door}/api/v1/runs", {"cookie": f"{COOKIE}={secret}"}).status == 401


def test_on_an_open_server_one_may_sign_in_to_label_under_ones_name(server: str, store: Store) -> None:
    page = get(f"{server}/sign-in?next=/trends")
    reply = submit(f"{server}/sign-in", {**fields(page), "token": store.tokens.create("Ida", "write")[1]})
    assert (reply.status, reply.headers["location"]) == (303, "/trends")
    assert "Ida (write)" in get(server, {"cookie": reply.headers["set-cookie"].partition(";")[0]}).text


def test_where_no_token_is_needed_it_says_so(server: str) -> None:
    page = get(f"{server}/sign-in?next=/trends")
    assert (page.status, "No token is needed here" in page.text) == (200, True)
    assert "admin)" not in get(f"{server}/").text


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "\n//evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "evil.example",
        "",
        "/ä",
        "/x\r\nset-cookie: a=b",
    ],
)
def test_nobody_is_led_elsewhere(door: str, store: Store, elsewhere: str) -> None:
    assert local(elsewhere) == "/"
    page = get(f"{door}/sign-in?{urlencode({'next': elsewhere})}")
    assert fields(page)["next"] == "/"
    given = {**fields(page), "next": elsewhere, "token": store.tokens.create("Ida", "read")[1]}
    assert submit(f"{door}/sign-in", given).headers["location"] == "/"


def test_our_own_pages_are_led_to() -> None:
    for page in ("/", "/runs/a%2Fb?filter=goal%3C0.5", "/compare?a=1&b=2#x"):
        assert local(page) == page
