"""Requests that threads answer: one user leaves threads to others, and who hangs up waits no longer."""

from __future__ import annotations

import socket
import threading

import pytest

from faults.servers import soon
from vivavoce.server.access import Access
from vivavoce.server.app import THREADS_FOR_USER, create_app
from vivavoce.server.fair_share import FairShare
from vivavoce.server.listening import listening
from vivavoce.server.state import server_of
from vivavoce.store.store import Store

from .live import get, running, serving

PAGES = 20


def waiting(turns: FairShare) -> int:
    return len(turns._waiters)  # pyright: ignore[reportPrivateUsage]


def test_a_user_leaves_threads_to_others_and_whoever_hangs_up_leaves_the_queue(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, going = threading.Event(), threading.Semaphore(0)
    latest = Store.run

    def run(self: Store, name: str) -> object:
        if name == "held":
            going.release()
            assert opened.wait(60)
        return latest(self, name)

    monkeypatch.setattr(Store, "run", run)
    bound = listening("127.0.0.1", 0)
    port = bound.getsockname()[1]
    host = f"127.0.0.1:{port}"
    app = create_app(store, Access.of({host}, demanded=True))
    ann, bob = ({"authorization": f"Bearer {store.tokens.create(name, 'read')[1]}"} for name in ("ann", "bob"))
    head = f"GET /api/v1/runs/held HTTP/1.1\r\nHost: {host}\r\nAuthorization: {ann['authorization']}\r\n\r\n"
    with running(app, bound):
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(PAGES)]
        for client in clients:
            client.sendall(head.encode())
        for _ in range(THREADS_FOR_USER):
            assert going.acquire(timeout=60)
        soon(lambda: waiting(server_of(app).turns) == PAGES - THREADS_FOR_USER)
        assert get(f"http://{host}/api/v1/runs", bob).status == 200
        assert not going.acquire(blocking=False)
        for client in clients:
            client.close()
        soon(lambda: waiting(server_of(app).turns) == 0)
        opened.set()
        soon(lambda: server_of(app).turns.used == 0)
    assert not going.acquire(blocking=False)


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/api/v1/runs/latest"), ("POST", "/views")])
def test_a_client_that_leaves_while_it_sends_is_no_error(
    store: Store, method: str, path: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(store) as url:
        host = url.removeprefix("http://")
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {url}\r\nContent-Length: 1000\r\n\r\n{{"
        with socket.create_connection(("127.0.0.1", int(host.partition(":")[2]))) as client:
            client.sendall(head.encode())
        soon(lambda: any(record.getMessage() == "request" for record in caplog.records))
        assert get(f"{url}/api/v1/runs").status == 200
    assert "Traceback" not in capfd.readouterr().err
