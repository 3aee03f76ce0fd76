from __future__ import annotations

import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import event
from starlette.datastructures import Headers

from vivavoce.server.access import MAX_BODY, SAFE_METHODS, Access
from vivavoce.server.app import routers
from vivavoce.server.authenticator import COOKIE
from vivavoce.server.job_requests import SuiteJob
from vivavoce.server.jobs import Jobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.users import whoever_sits_here
from vivavoce.store.store import Store

from .live import cookie_of, get, send, serving

TALK = {"messages": [{"role": "user", "content": "hi"}], "metrics": ["turn_count"]}


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1:1", "127.0.0.1", ""])
def test_a_name_that_is_not_ours_is_not_answered_to(server: str, host: str) -> None:
    assert get(f"{server}/api/v1/runs", {"host": host}).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1"])
def test_what_changes_something_comes_from_our_own_pages(server: str, origin: str) -> None:
    url = f"{server}/api/v1/evaluations"
    assert send("POST", url, TALK, {"origin": origin}).status == 403
    assert send("POST", url, TALK, {"origin": f"http://{urlsplit(server).netloc}"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_page_of_another_has_a_browser_send_is_refused(server: str, site: str) -> None:
    url = f"{server}/api/v1/evaluations"
    assert send("POST", url, TALK, {"sec-fetch-site": site}).status == 403
    assert send("DELETE", f"{server}/api/v1/runs/latest", None, {"sec-fetch-site": site}).status == 403
    assert send("POST", url, TALK, {"sec-fetch-site": "same-origin"}).status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_the_api_takes_nothing_that_a_form_elsewhere_could_send(server: str, kind: str) -> None:
    reply = send("POST", f"{server}/api/v1/evaluations", TALK, {"content-type": kind})
    assert (reply.status, list(reply.json())[:2]) == (415, ["detail", "code"])
    if kind:
        assert send("POST", f"{server}/api/v1/jobs", b"", {"content-type": kind}).status == 415


def test_an_address_of_a_proxy_is_answered_to_and_its_pages_may_write(store: Store) -> None:
    with serving(store, token="opensesame", public="https://viva.example.org") as url:
        known = {"host": "viva.example.org", "authorization": "Bearer opensesame"}
        assert get(f"{url}/api/v1/runs", known).status == 200
        for origin, status in (("https://viva.example.org", 200), ("http://viva.example.org", 403)):
            assert send("POST", f"{url}/api/v1/evaluations", TALK, {**known, "origin": origin}).status == status


def test_a_program_is_refused_in_json_and_a_person_on_a_page(server: str) -> None:
    for headers, method, status in (
        ({"host": "evil.example"}, "GET", 421),
        ({"origin": "http://evil.example"}, "POST", 403),
        ({"transfer-encoding": "chunked"}, "POST", 411),
        ({"content-length": str(MAX_BODY + 1)}, "POST", 413),
    ):
        told = send(method, f"{server}/api/v1/jobs", None, headers)
        assert (told.status, list(told.json())[:2]) == (status, ["detail", "code"])
        shown = send(method, f"{server}/jobs", None, headers)
        assert (shown.status, shown.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "<h1>Not found</h1>" in get(f"{server}/no/such/page").text


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
            {"cookie": f"{COOKIE}=opensesame"},
            {"cookie": '\x7f"'},
        ):
            assert get(f"{url}/api/v1/runs", headers).status == 401
        session = cookie_of(store, "opensesame")
        for headers in ({"authorization": "bearer opensesame"}, {"cookie": f"a=b; {session}"}):
            assert get(f"{url}/api/v1/runs", headers).status == 200


def test_a_token_is_not_kept_as_such() -> None:
    assert "opensesame" not in repr(Access.of(["x"], "opensesame"))


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "9" * 19])
def test_a_request_that_is_too_large_is_refused_before_it_is_read(server: str, length: str) -> None:
    reply = send("POST", f"{server}/api/v1/evaluations", b"", {"content-length": length})
    assert reply.status == 413


@pytest.mark.parametrize("also", [{}, {"content-length": "5"}])
@pytest.mark.parametrize("method", ["POST", "DELETE", "GET"])
def test_a_body_that_does_not_say_how_long_it_is_is_refused_before_it_is_read(
    server: str, method: str, also: dict[str, str]
) -> None:
    reply = send(method, f"{server}/api/v1/runs/latest", None, {"transfer-encoding": "chunked", **also})
    assert reply.status in (400, 411)


def test_each_of_several_requests_sent_at_once_is_looked_at(server: str) -> None:
    host = urlsplit(server).netloc
    ours = f"GET /api/v1/health HTTP/1.1\r\nhost: {host}\r\n\r\n"
    theirs = "GET /api/v1/health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(host.partition(":")[2])), timeout=30) as connection:
        connection.sendall((ours + theirs).encode())
        answers = connection.makefile("rb").read().decode()
    assert re.findall(r"HTTP/1.1 (\d+)", answers) == ["200", "421"]


def test_on_all_addresses_every_numeric_one_is_ours_and_no_name_of_others() -> None:
    access = Access.of({"box:8484"}, demanded=True, everywhere=True)

    def status(host: str, origin: str | None = None) -> int | None:
        more = {} if origin is None else {"origin": origin}
        scope = {"type": "http", "method": "GET" if origin is None else "POST", "path": "/label"}
        refused = access.refusal(scope, Headers({"host": host, **more}))
        return None if refused is None else refused.status_code

    assert [status(one) for one in ("192.0.2.7:8484", "[2001:db8::1]:9", "127.0.0.1", "box:8484")] == [None] * 4
    assert [status(one) for one in ("evil.example:8484", "192.0.2.7.evil.example", "", "[", "box")] == [421] * 5
    assert status("192.0.2.7:8484", "http://192.0.2.7:8484") is None
    assert status("192.0.2.7:8484", "http://192.0.2.8:8484") == 403


def writes() -> list[tuple[str, str]]:
    """Every method and path that changes something."""
    found = [route for router in routers() for route in router.routes if isinstance(route, APIRoute)]
    named = [(re.sub(r"\{(trial|place)\}", "1", one.path), one.methods or set[str]()) for one in found]
    return [(method, re.sub(r"\{[^}]*\}", "x", path)) for path, methods in named for method in methods - SAFE_METHODS]


@pytest.mark.parametrize("foreign", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_no_page_of_another_changes_anything_with_the_cookie_of_somebody(store: Store, foreign: dict[str, str]) -> None:
    cookie = cookie_of(store, store.tokens.create("ida", "admin")[1])
    form = {"content-type": "application/x-www-form-urlencoded"}
    with serving(store, demanded=True) as url:
        for method, path in writes():
            headers = {"cookie": cookie, **({} if path.startswith("/api/") else form), **foreign}
            reply = send(method, url + path, {} if path.startswith("/api/") else b"verdict=pass", headers)
            assert (path, reply.status) == (path, 403)
            assert "must come from a page of this server" in reply.text
    assert len(writes()) > 8


def said_by(url: str, name: str, headers: dict[str, str]) -> str:
    reply = send("PUT", f"{url}/api/v1/runs/latest/samples/{name}/0/labels", {"verdict": "pass"}, headers)
    return reply.json()["author"] if reply.status == 200 else f"{reply.status}"


def test_on_an_open_server_a_token_says_who_labels(server: str, store: Store) -> None:
    for name in ("ida", "bo"):
        secret = store.tokens.create(name, "write")[1]
        assert said_by(server, "kind", {"authorization": f"Bearer {secret}"}) == name
        assert said_by(server, "kind", {"cookie": cookie_of(store, secret)}) == name
    assert said_by(server, "kind", {}) == whoever_sits_here().name
    assert len(list(store.labels.all(store.run("latest").id))) == 3


def test_on_an_open_server_a_wrong_token_is_refused_and_an_old_cookie_is_not(server: str, store: Store) -> None:
    token, secret = store.tokens.create("ida", "write")
    store.tokens.revoke(token.id)
    assert said_by(server, "kind", {"authorization": f"Bearer {secret}"}) == "401"
    assert said_by(server, "kind", {"authorization": "Bearer guess"}) == "401"
    assert said_by(server, "kind", {"cookie": cookie_of(store, secret)}) == whoever_sits_here().name


def test_on_an_open_server_a_token_gives_its_role(server: str, store: Store) -> None:
    bearer = {"authorization": f"Bearer {store.tokens.create('ida', 'read')[1]}"}
    assert said_by(server, "kind", bearer) == "403"
    assert get(f"{server}/api/v1/audit", bearer).status == 403
    assert get(f"{server}/api/v1/runs", bearer).status == 200


def test_head_is_answered_as_get_is_without_the_body(server: str) -> None:
    for path in ("/", "/api/v1/runs", "/api/v1/runs/latest/export?format=csv", "/static/vv.css", "/api/v1/runs/none"):
        head, found = send("HEAD", server + path), get(server + path)
        assert (head.status, head.body) == (found.status, b"")
        assert head.headers["content-type"] == found.headers["content-type"]
        assert head.headers.get("content-length") == found.headers.get("content-length")


def test_the_head_of_news_that_do_not_end_comes_at_once(store: Store, workspace: Path) -> None:
    record = Jobs(store, ServerPolicy(workspace)).submit(SuiteJob(suite="suites/refunds.yaml"))
    with serving(store, ServerPolicy(workspace)) as url:
        head = send("HEAD", f"{url}/api/v1/jobs/{record.id}/events")
    assert (head.status, head.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")


def test_what_takes_no_get_takes_no_head_either(server: str) -> None:
    assert send("HEAD", f"{server}/api/v1/evaluations").status == 405


@pytest.mark.parametrize(
    "path", ["/", "/runs/latest", "/runs/latest/samples/kind", "/api/v1/runs/latest", "/api/v1/runs/latest/samples"]
)
def test_a_request_that_reads_begins_one_transaction(store: Store, path: str) -> None:
    with serving(store) as url:
        get(url + path)  # the secret, the roles and the like are read once
        begun: list[object] = []
        listen = begun.append
        event.listen(store.database.engine, "begin", listen)
        assert get(url + path).status == 200
        event.remove(store.database.engine, "begin", listen)
    assert len(begun) <= 2  # that of who asks, and the one of all that is read
