from __future__ import annotations

from collections.abc import Iterator

import pytest

from vivavoce.store.store import Store

from ..live import Reply, cookie_of, get, send, serving
from .test_sign_in import FORM, fields, submit


@pytest.fixture
def door(store: Store) -> Iterator[str]:
    """The address of a server that demands tokens."""
    with serving(store, demanded=True) as url:
        yield url


def cookie_for(store: Store, name: str) -> str:
    return cookie_of(store, store.tokens.create(name, "admin")[1])


def delete(door: str, cookie: str, given: dict[str, str]) -> Reply:
    """Send the form that deletes the run."""
    return submit(f"{door}/runs/{run_in(door, cookie)}/delete", given, cookie)


def run_in(door: str, cookie: str) -> str:
    return get(f"{door}/api/v1/runs", {"cookie": cookie}).json()["runs"][0]["id"]


def test_a_form_without_a_key_or_with_that_of_another_does_nothing(door: str, store: Store) -> None:
    ida, bo = cookie_for(store, "ida"), cookie_for(store, "bo")
    theirs = fields(get(f"{door}/runs/latest/delete", {"cookie": bo}))
    for given in ({}, {"form_key": ""}, {"form_key": "é"}, theirs, fields(get(f"{door}/sign-in"))):
        assert delete(door, ida, given).status == 403
    assert len(store.runs()) == 1
    assert delete(door, bo, theirs).status == 303


def test_two_tokens_of_one_name_have_keys_of_their_own(door: str, store: Store) -> None:
    keys = {fields(get(f"{door}/runs/latest/delete", {"cookie": cookie_for(store, "ida")}))["form_key"] for _ in "ab"}
    assert len(keys) == 2


def test_a_form_on_a_page_elsewhere_does_nothing_even_with_the_key(server: str, store: Store) -> None:
    key = "&".join(f"{name}={value}" for name, value in fields(get(f"{server}/runs/latest/delete")).items())
    url = f"{server}/runs/{store.run('latest').id}/delete"
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert send("POST", url, key.encode(), {**FORM, **headers}).status == 403
    assert len(store.runs()) == 1


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"{}", 415),
        ("multipart/form-data", b"", 415),
        ("text/plain", b"form_key=x", 415),
        ("application/x-www-form-urlencoded", b"x=" + b"y" * 1_000_001, 413),
    ],
)
def test_what_is_no_form_of_ours_is_refused_on_a_page(server: str, kind: str, body: bytes, status: int) -> None:
    reply = send("POST", f"{server}/runs/latest/delete", body, {"content-type": kind})
    assert (reply.status, reply.headers["content-type"]) == (status, "text/html; charset=utf-8")
