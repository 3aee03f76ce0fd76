"""What clients make a server hold, over real sockets: bodies that wait, answers that nobody reads, and requests."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from faults.servers import soon
from vivavoce.server import connection, traffic
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .api.test_evaluations import TALK, VERDICT
from .live import get, send, serving
from .pages.cases import keep, outcome, turn

LARGE = 30_000_000
ANSWER = "/api/v1/runs/large/samples/s/0"


@pytest.fixture
def tokens(store: Store) -> dict[str, dict[str, str]]:
    """The headers of two users."""
    made = {name: store.tokens.create(name, "write") for name in ("greedy", "modest")}
    return {name: {"authorization": f"Bearer {secret}"} for name, (_, secret) in made.items()}


def request(url: str, first: str, headers: dict[str, str], **more: Any) -> bytes:
    lines = [f"{first} HTTP/1.1", f"Host: {urlsplit(url).netloc}"]
    lines += [f"{name}: {value}" for name, value in {**headers, **more}.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def connected(url: str) -> socket.socket:
    """Return a connection whose client has hardly any room for an answer."""
    host = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect((host.hostname or "", host.port or 0))
    return client


@contextmanager
def opened(gate: threading.Event) -> Generator[None]:
    """Open a gate at the end, so that nobody waits for a test that failed."""
    try:
        yield
    finally:
        gate.set()


@pytest.fixture
def large(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with a stored conversation whose answer one user may have once at a time."""
    keep(store, [outcome("s", [turn(0, "Hi", "x" * LARGE)])], "large", at=9e9)
    monkeypatch.setattr(traffic, "MAX_BYTES_OF_USER", 2 * LARGE)
    with serving(store, demanded=True) as url:
        yield url


def test_an_answer_that_nobody_reads_leaves_no_room_for_another_of_the_same_user(
    large: str, tokens: dict[str, dict[str, str]]
) -> None:
    size = len(get(large + ANSWER, tokens["greedy"]).body)
    assert LARGE < size < 3 * LARGE
    with connected(large) as client:
        client.sendall(request(large, f"GET {ANSWER}", tokens["greedy"]))
        assert client.recv(20).startswith(b"HTTP/1.1 200 ")
        refused = get(large + ANSWER, tokens["greedy"])
        assert (refused.status, refused.headers["retry-after"]) == (429, "2")
        assert "not read" in refused.json()["detail"]
        assert get(f"{large}/api/v1/runs", tokens["greedy"]).status == 200
        assert len(get(large + ANSWER, tokens["modest"]).body) == size
    soon(lambda: get(large + ANSWER, tokens["greedy"]).status == 200)


def test_a_client_that_does_not_read_loses_its_answer(
    large: str, tokens: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STALL_SECONDS", 0.5)
    monkeypatch.setattr(connection, "CHECK_SECONDS", 0.1)
    with connected(large) as client:
        client.sendall(request(large, f"GET {ANSWER}", tokens["greedy"]))
        assert client.recv(20).startswith(b"HTTP/1.1 200 ")
        soon(lambda: get(large + ANSWER, tokens["greedy"]).status == 200)


def test_an_answer_in_parts_is_whole_with_and_without_compression(
    large: str, tokens: dict[str, dict[str, str]]
) -> None:
    plain = get(large + ANSWER, tokens["modest"])
    assert plain.headers["content-length"] == str(len(plain.body))
    packed = get(large + ANSWER, {**tokens["modest"], "accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < LARGE / 10
    head = send("HEAD", large + ANSWER, headers=tokens["modest"])
    assert (head.status, head.body) == (200, b"")
    assert plain.json()


def test_bodies_of_a_user_wait_unread_while_those_of_others_are_answered(
    store: Store, tokens: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "MAX_BYTES_OF_USER", 150_000)
    monkeypatch.setattr(connection, "LONGEST", 1.0)
    arrived, gate = threading.Semaphore(0), threading.Event()

    def judge(_: object) -> Any:
        arrived.release()
        assert gate.wait(60)
        return VERDICT

    with LoopbackServer(judge) as judging, ThreadPoolExecutor() as pool:
        name = f"{judging.base_url}#examiner"
        body = {"messages": TALK, "goal": "learn the offer", "metrics": ["goal_achievement"], "judge": name}
        waiting = {"messages": TALK, "metrics": ["turn_count"], "metadata": {"filler": "x" * 2_000_000}}
        with serving(store, ServerPolicy(models=frozenset({name})), demanded=True) as url, opened(gate):
            address = f"{url}/api/v1/evaluations"
            filler = {**body, "metadata": {"filler": "x" * 100_000}}
            first = pool.submit(send, "POST", address, filler, tokens["greedy"])
            assert arrived.acquire(timeout=60)
            with connected(url) as client:
                data = json.dumps(waiting).encode()
                more = {"Content-Type": "application/json", "Content-Length": len(data)}
                client.sendall(request(url, "POST /api/v1/evaluations", tokens["greedy"], **more))
                second = pool.submit(client.sendall, data)
                assert send("POST", address, waiting, tokens["modest"]).status == 200
                client.settimeout(2.5)
                with pytest.raises(TimeoutError):  # longer than a request may take that is read
                    client.recv(1)
                client.settimeout(60)
                gate.set()
                second.result(60)
                assert client.recv(20).startswith(b"HTTP/1.1 200 ")
            assert first.result(60).json()["all_passed"]


def test_a_user_has_a_part_of_all_requests(
    store: Store, tokens: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "MAX_REQUESTS_OF_USER", 2)
    with serving(store, demanded=True) as url, ExitStack() as stack:
        more = {"Content-Type": "application/json", "Content-Length": 100}
        half_sent = [stack.enter_context(connected(url)) for _ in range(2)]
        for client in half_sent:
            client.sendall(request(url, "POST /api/v1/evaluations", tokens["greedy"], **more))
        soon(lambda: get(f"{url}/api/v1/runs", tokens["greedy"]).status == 429)
        refused = get(f"{url}/api/v1/runs", tokens["greedy"])
        assert "greedy has 2 requests in progress" in refused.json()["detail"]
        assert get(f"{url}/api/v1/runs", tokens["modest"]).status == 200
        half_sent[0].close()
        soon(lambda: get(f"{url}/api/v1/runs", tokens["greedy"]).status == 200)
