"""A request that does not arrive ends in a limited time, over a socket of its own; an answer may take longer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from vivavoce.server import connection as module
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .api.test_evaluations import TALK, VERDICT
from .live import get, send, serving

LIMIT = 0.4


@pytest.fixture
def url(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on which a request has 0.4 seconds to arrive."""
    monkeypatch.setattr(module, "LONGEST", LIMIT)
    with serving(store) as base:
        yield base


def connected(url: str) -> socket.socket:
    host = urlsplit(url)
    return socket.create_connection((host.hostname or "", host.port or 0), timeout=30)


def rest(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    found = b""
    while more := connection.recv(65536):
        found += more
    return found


def head(url: str, *lines: str) -> bytes:
    return "\r\n".join([*lines, f"host: {urlsplit(url).netloc}", ""]).encode()


@pytest.mark.parametrize("part", ["nothing", "a line", "a head without its end", "a part of the body"])
def test_a_half_sent_request_is_ended(url: str, part: str) -> None:
    sent = {
        "nothing": b"",
        "a line": b"GET /api/v1/health HTTP/1.1\r\n",
        "a head without its end": head(url, "GET /api/v1/health HTTP/1.1"),
        "a part of the body": head(
            url, "POST /api/v1/jobs HTTP/1.1", "content-type: application/json", "content-length: 100"
        )
        + b'\r\n{"kind": ',
    }[part]
    begun = time.monotonic()
    with connected(url) as connection:
        connection.sendall(sent)
        answer = rest(connection)
    assert LIMIT * 0.9 < time.monotonic() - begun < 10
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert get(f"{url}/api/v1/health").status == 200


def test_a_byte_now_and_then_gives_no_more_time(url: str) -> None:
    with connected(url) as connection:
        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nx: ")
        with pytest.raises(OSError, match=r"reset|pipe"):
            trickle(connection)


def trickle(connection: socket.socket, seconds: float = 10) -> None:
    """Send a byte now and then."""
    for _ in range(int(seconds / 0.02)):
        connection.sendall(b"a")
        time.sleep(0.02)


def test_each_request_of_a_kept_connection_has_its_own_time(url: str) -> None:
    whole = head(url, "GET /api/v1/health HTTP/1.1") + b"\r\n"
    with connected(url) as connection:
        for _ in range(6):
            connection.sendall(whole[:20])
            time.sleep(LIMIT / 4)
            connection.sendall(whole[20:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(whole + whole[:20])
        answer = rest(connection)
    assert answer.count(b"HTTP/1.1 200 ") == 1
    assert answer.count(b"HTTP/1.1 408 ") == 1


def test_an_answer_may_take_longer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", LIMIT)
    with LoopbackServer(lambda _: VERDICT, delay=3 * LIMIT) as judge:
        name = f"{judge.base_url}#examiner"
        with serving(store, ServerPolicy(models=frozenset({name}))) as url:
            body = {"messages": TALK, "goal": "learn the offer", "metrics": ["goal_achievement"], "judge": name}
            assert send("POST", f"{url}/api/v1/evaluations", body).json()["all_passed"]
