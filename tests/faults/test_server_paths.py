"""A thousand addresses that nobody means well with, sent as they are over a socket."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from server.live import get, serving
from server.pages.cases import keep, outcome, turn
from server.pages.hostile import TEXTS
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

ADDRESSES = 1000
PARTS = (
    *("%00", "%2e%2e", "..", ".", "%2f", "%5c", "\\", "%ED%A0%80", "%C0%AF", "%FF%FE", "%F0%9F%8E%93", "%E2%80%AE"),
    *("%0d%0aSet-Cookie:%20a=b", "%0a", "%0d", "%09", "%7f", "%", "%zz", "%u0041", "%25%30%30", "%EF%BC%91"),
    *("%D9%A1", "%E0%A5%A7", "-1", "0x10", "1e9", "9" * 400, "nan", "inf", "-0", "1.5", "None", "null", "true"),
    *("x" * 3000, "%41" * 900, ";a=b", "a;b", "@", "~", "*", "{run}", "$", "'", '"', "--", "(", "|", "`", "&&", ""),
    *("latest~99999999999", "latest~-1", "run-1%00", "run-1/", "con", "aux.txt", "C:%5c", "file:", "http://x", "//x"),
    *(quote(text, safe="") for text in TEXTS),
)
PLACES = (
    *("/{}", "/runs/{}", "/runs/{}/{}", "/runs/run-1/samples/{}", "/runs/{}/samples/{}?trial={}", "/static/{}"),
    *("/static/{}/{}", "/api/{}", "/api/v1/{}", "/api/v1/runs/{}", "/api/v1/runs/run-1/{}", "/api/v1/jobs/{}"),
    *("/api/v1/runs/run-1/samples/{}/{}", "/api/v1/runs/{}/samples/one/{}", "/api/v1/jobs/{}/events", "/jobs/{}"),
    *("/?after={}&q={}", "/?suite={}&status={}", "/runs/run-1?filter={}&sort={}", "/runs/run-1?after={}&grading={}"),
    *("/api/v1/runs?after={}&limit={}", "/api/v1/runs/run-1/samples?filter={}&sort={}", "/api/v1/search?q={}&after={}"),
    *("/api/v1/runs/run-1/scores?grader={}&after={}", "/api/v1/runs/run-1/samples/one/{}/turns", "/compare?a={}&b={}"),
    *("/api/v1/runs/run-1/export?format={}", "/api/v1/comparisons?a={}&b={}&threshold={}", "/trends?suite={}&q={}"),
    *("/label?run={}&grader={}", "/openapi.json/{}", "/{}/{}/{}/{}", "/{}?{}", "/api/v1/{}/{}/{}"),
)


class Raw(NamedTuple):
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("paths")
    with Store.open(str(folder / "kept.db")) as store:
        keep(store, [outcome("one", [turn(0, "Hello?")])])
        with serving(store, ServerPolicy(folder)) as url:
            yield url


def asked(url: str, target: bytes, method: bytes = b"GET") -> Raw:
    """Send a request line as it is, and read the answer to its end."""
    host = urlsplit(url)
    with socket.create_connection((host.hostname or "", host.port or 0), timeout=30) as connection:
        connection.sendall(method + b" " + target + b" HTTP/1.1\r\nHost: " + host.netloc.encode())
        connection.sendall(b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return Raw(int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body)


def addresses() -> Iterator[bytes]:
    """Return the same addresses each time."""
    chance = random.Random(7)
    for number in range(ADDRESSES):
        place = PLACES[number % len(PLACES)]
        yield place.format(*(chance.choice(PARTS) for _ in range(place.count("{}")))).encode("latin-1", "replace")


def test_no_address_breaks_the_server_or_its_headers(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    statuses: dict[int, int] = {}
    for target in addresses():
        reply = asked(url, target)
        statuses[reply.status] = statuses.get(reply.status, 0) + 1
        assert reply.status < 500, (target, reply)
        assert "default-src 'none'" in reply.headers["content-security-policy"], (target, reply)
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in reply.headers
        if reply.status >= 400:
            kind = "application/json" if target.startswith((b"/api/", b"/openapi.json")) else "text/html"
            assert reply.headers["content-type"].startswith(kind), (target, reply)
            assert b"Traceback" not in reply.body
    assert statuses[404] > ADDRESSES / 4
    assert get(url).status == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "target",
    [
        b"/\x00",
        b"/\x01",
        b"/a b",
        b"/\r\n",
        b"/\xff\xfe",
        b"",
        b"http://evil.example/",
        b"*",
        b"//evil/",
    ],
)
def test_what_is_no_address_is_refused(url: str, target: bytes) -> None:
    assert 400 <= asked(url, target).status < 500
    assert get(url).status == 200


def test_an_address_that_never_ends_is_refused_or_cut_off(url: str) -> None:
    with suppress(ConnectionResetError, BrokenPipeError):  # nobody reads it to its end, and the answer may go with it
        assert 400 <= asked(url, b"x" * 100_000).status < 500
    assert get(url).status == 200


@pytest.mark.parametrize("method", [b"PUT", b"DELETE", b"PATCH", b"TRACE", b"CONNECT", b"NONSENSE", b"OPTIONS"])
@pytest.mark.parametrize("path", [b"/", b"/api/v1/runs", b"/static/vv.css", b"/openapi.json"])
def test_a_method_that_nobody_takes_is_refused(url: str, method: bytes, path: bytes) -> None:
    reply = asked(url, path, method)
    assert 400 <= reply.status < 500
    assert b"Traceback" not in reply.body
