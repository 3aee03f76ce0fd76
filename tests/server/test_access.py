from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from vivavoce.server.access import COOKIE, MAX_BODY, Access
from vivavoce.store.store import Store

from .live import get, send, serving

TALK = {"messages": [{"role": "user", "content": "hi"}], "metrics": ["turn_count"]}


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1:1", "127.0.0.1", ""])
def test_a_name_that_is_not_ours_is_not_answered_to(server: str, host: str) -> None:
    assert get(f"{server}/api/v1/runs", {"host": host}).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1"])
def test_what_changes_something_comes_from_our_own_pages(server: str, origin: str) -> None:
    url = f"{server}/api/v1/evaluations"
    assert send("POST", url, TALK, {"origin": origin}).status == 403
    assert send("POST", url, TALK, {"origin": f"http://{urlsplit(server).netloc}"}).status == 200


def test_every_answer_tells_the_browser_to_load_nothing_from_elsewhere(server: str) -> None:
    for path in ("/api/v1/runs", "/nothing", "/openapi.json"):
        headers = get(server + path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
        assert "server" not in headers


def test_a_token_is_asked_for_in_a_header_or_a_cookie(store: Store) -> None:
    with serving(store, token="opensesame") as url:
        for headers in (
            {},
            {"authorization": "Bearer other"},
            {"authorization": "Basic opensesame"},
            {"cookie": f"{COOKIE}=x"},
            {"cookie": '\x7f"'},
        ):
            assert get(f"{url}/api/v1/runs", headers).status == 401
        for headers in ({"authorization": "bearer opensesame"}, {"cookie": f"a=b; {COOKIE}=opensesame"}):
            assert get(f"{url}/api/v1/runs", headers).status == 200


def test_a_token_is_not_kept_as_such() -> None:
    assert "opensesame" not in repr(Access.of(["x"], "opensesame"))


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "9" * 19])
def test_a_request_that_is_too_large_is_refused_before_it_is_read(server: str, length: str) -> None:
    reply = send("POST", f"{server}/api/v1/evaluations", b"", {"content-length": length})
    assert reply.status == 413


def test_a_body_that_does_not_say_how_long_it_is_is_refused_before_it_is_read(server: str) -> None:
    reply = send("POST", f"{server}/api/v1/evaluations", None, {"transfer-encoding": "chunked"})
    assert reply.status == 411
