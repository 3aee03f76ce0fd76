"""A request that does not arrive ends in a limited time, over a socket of its own; an answer may take longer."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any
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


def test_a_new_connection_takes_the_place_of_one_without_a_request(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 4)
    with serving(store) as url, ExitStack() as stack:
        half_sent = [stack.enter_context(connected(url)) for _ in range(4)]
        for connection in half_sent:
            connection.sendall(b"GET /livez HTTP/1.1\r\n")
        for _ in range(2):
            assert get(f"{url}/api/v1/health").status == 200
        assert rest(half_sent[0]).startswith(b"HTTP/1.1 503 ")
        half_sent[-1].sendall(head(url).lstrip() + b"\r\n")
        assert half_sent[-1].recv(65536).startswith(b"HTTP/1.1 200 ")


def test_where_each_connection_has_a_request_another_one_is_turned_away(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, answered = threading.Event(), threading.Event()

    def answer(_: object) -> Any:
        arrived.set()
        answered.wait(30)
        return VERDICT

    monkeypatch.setattr(module, "MAX_CONNECTIONS", 1)
    with LoopbackServer(answer) as judge:
        name = f"{judge.base_url}#examiner"
        with serving(store, ServerPolicy(models=frozenset({name}))) as url:
            body = {"messages": TALK, "goal": "learn the offer", "metrics": ["goal_achievement"], "judge": name}
            with ThreadPoolExecutor() as pool:
                evaluation = pool.submit(send, "POST", f"{url}/api/v1/evaluations", body)
                assert arrived.wait(30)
                with connected(url) as connection:
                    assert rest(connection).startswith(b"HTTP/1.1 503 ")
                answered.set()
                assert evaluation.result().json()["all_passed"]


FONT = "GET /static/fonts/sans.1.woff2 HTTP/1.1"


def overfilled(url: str) -> socket.socket:
    """Return a connection whose client asks for more than fits between it and the server, and reads nothing."""
    host = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect((host.hostname or "", host.port or 0))
    connection.sendall((head(url, FONT) + b"\r\n") * 200)
    return connection


@pytest.mark.parametrize("closes", [False, True])
def test_a_client_that_reads_nothing_is_disconnected(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, closes: bool
) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", LIMIT)
    monkeypatch.setattr(module, "CHECK_SECONDS", LIMIT / 4)
    with serving(store) as url, overfilled(url) as connection:
        if closes:
            connection.sendall(head(url, FONT, "connection: close") + b"\r\n")
        time.sleep(4 * LIMIT)
        with pytest.raises(OSError, match="reset"):
            rest(connection)
        assert get(f"{url}/api/v1/health").status == 200


def test_a_client_that_reads_slowly_gets_its_answers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", LIMIT)
    monkeypatch.setattr(module, "CHECK_SECONDS", LIMIT / 4)
    with serving(store) as url, overfilled(url) as connection:
        for _ in range(int(8 * LIMIT / 0.05)):
            assert connection.recv(4096)
            time.sleep(0.05)
        connection.sendall(head(url, FONT, "connection: close") + b"\r\n")
        assert len(rest(connection)) > 1_000_000


def test_a_new_connection_takes_the_place_of_one_whose_client_reads_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(module, "REPLACED_STALL_SECONDS", LIMIT)
    monkeypatch.setattr(module, "CHECK_SECONDS", LIMIT / 4)
    with serving(store) as url, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(overfilled(url))
        time.sleep(4 * LIMIT)
        for _ in range(3):
            assert get(f"{url}/api/v1/health").status == 200


def test_an_address_has_a_part_of_all_connections(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CONNECTIONS_OF_ADDRESS", 2)
    with serving(store) as url, ExitStack() as stack:
        with connected(url), connected(url), connected(url):
            assert get(f"{url}/livez").status == 200  # it comes from this machine
        monkeypatch.setattr(module, "is_limited", bool)
        half_sent = [stack.enter_context(connected(url)) for _ in range(2)]
        for connection in half_sent:
            connection.sendall(
                head(url, "POST /api/v1/evaluations HTTP/1.1", "content-type: application/json", "content-length: 9")
                + b"\r\n"
            )
        with connected(url) as another:
            assert rest(another).startswith(b"HTTP/1.1 503 ")


@pytest.mark.parametrize(
    ("address", "limited"),
    [
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("::1", False),
        ("", False),
        ("192.0.2.1", True),
        ("2001:db8::", True),
    ],
)
def test_addresses_of_this_machine_are_not_limited(address: str, *, limited: bool) -> None:
    assert module.is_limited(address) is limited


@pytest.mark.parametrize(("handles", "most"), [(None, 1_000), (4_096, 1_000), (1_024, 512), (1, 1)])
def test_half_of_the_files_are_for_connections(handles: int | None, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "handle_limit", lambda: handles)
    assert module.max_connections() == most


def test_failures_to_accept_are_logged_in_one_line_a_second(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("vivavoce.server.connection.time.monotonic", lambda: now[0])
    monkeypatch.setattr(module, "_LOGGER", logging.getLogger("connections"))
    failures = module.AcceptFailures()
    context = {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
    with closing(asyncio.new_event_loop()) as loop:
        for second in range(3):
            now[0] = 100.0 + second
            for _ in range(1_000):
                failures(loop, context)
        failures(loop, {"message": "something else"})
    *lines, last = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(" (")[2] for line in lines] == ["1 failures)", "1000 failures)", "1000 failures)"]
    assert last == "something else"
