"""Requests with processes of their own: who waits for whom, and what ends them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi import HTTPException, Request, Response

from faults.servers import soon
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.listening import listening
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.process_route import MAX_AT_ONCE, MAX_AT_ONCE_FOR_USER, RequestProcesses
from vivavoce.server.processes import Task, call
from vivavoce.server.state import server_of
from vivavoce.server.turns import CLIENT_GONE
from vivavoce.server.users import User
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from .live import get, running, serving

TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]


async def test_a_user_leaves_places_to_others(tmp_path: Path) -> None:
    processes = RequestProcesses("none.db", ServerPolicy(tmp_path), b"secret")
    going, gate = threading.Semaphore(0), threading.Event()

    def wait() -> str:
        going.release()
        assert gate.wait(60)
        return "done"

    greedy, modest = request_of(User("greedy", "write", "g")), request_of(User("modest", "write", "m"))
    held = [asyncio.create_task(processes.run(greedy, wait)) for _ in range(MAX_AT_ONCE)]
    for _ in range(MAX_AT_ONCE_FOR_USER):
        assert await asyncio.to_thread(going.acquire, timeout=60)
    assert await processes.run(modest, lambda: "now") == "now"
    assert not going.acquire(blocking=False)
    gate.set()
    assert await asyncio.gather(*held) == ["done"] * MAX_AT_ONCE


def request_of(user: User) -> Request:
    """Return a request of a user whose client stays."""

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "state": {"user": user}}, receive)


async def test_the_work_of_a_client_that_hangs_up_loses_its_process_and_its_place(tmp_path: Path) -> None:
    processes = RequestProcesses("none.db", ServerPolicy(tmp_path), b"secret")
    hung_up, ended = asyncio.Event(), threading.Event()

    def hold() -> None:
        try:
            call(Task("server.hard_work:hold_the_interpreter", ()))
        finally:
            ended.set()

    async def receive() -> dict[str, str]:
        await hung_up.wait()
        return {"type": "http.disconnect"}

    request = Request({"type": "http", "state": {"user": User("u", "write", "u")}}, receive)
    working = asyncio.create_task(processes.run(request, hold))
    await asyncio.to_thread(soon, lambda: places_taken(processes) == 1)
    hung_up.set()
    with pytest.raises(HTTPException) as raised:
        await working
    assert (raised.value.status_code, places_taken(processes)) == (CLIENT_GONE, 0)
    assert await asyncio.to_thread(ended.wait, 60)


def test_the_process_of_a_client_that_hangs_up_is_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = listening("127.0.0.1", 0)
    host = f"127.0.0.1:{bound.getsockname()[1]}"
    app = create_app(store, Access.of({host}))
    asked, gate = threading.Event(), threading.Event()

    def judge(body: object) -> dict[str, object]:
        del body
        asked.set()
        gate.wait(60)
        return {}

    with LoopbackServer(judge) as judging, running(app, bound):
        monkeypatch.setenv("VIVAVOCE_JUDGE", f"{judging.base_url}#examiner")
        body = json.dumps({"messages": TALK, "metrics": ["coherence"]}).encode()
        head = f"POST /api/v1/evaluations HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((urlsplit(f"//{host}").hostname or "", bound.getsockname()[1])) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert asked.wait(60)
            assert places_taken(server_of(app).processes) == 1
        soon(lambda: places_taken(server_of(app).processes) == 0)
        gate.set()


def test_a_request_keeps_its_place_until_its_answer_is_read(store: Store) -> None:
    bound = listening("127.0.0.1", 0)
    address = bound.getsockname()[:2]
    host = f"127.0.0.1:{address[1]}"
    app = create_app(store, Access.of({host}))
    talk = [TALK[0], {"role": "assistant", "content": "x" * 20_000_000}]
    metric = {"metric": "contains", "extractor": "last_assistant"}
    body = json.dumps({"messages": talk, "metrics": [metric], "reference": "y"}).encode()
    head = f"POST /api/v1/evaluations HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with running(app, bound), socket.create_connection(address, timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(20).startswith(b"HTTP/1.1 200 ")
        assert places_taken(server_of(app).processes) == 1
        size = 20
        while size < 20_000_000:
            size += len(connection.recv(2**20))
        soon(lambda: places_taken(server_of(app).processes) == 0)


def places_taken(processes: RequestProcesses) -> int:
    return processes._places.used  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/runs/latest/samples/a/0/exchange?grader=expect",
        "/runs/latest/exchange?sample=a&grader=expect",
        "/runs/latest/exchange/text?sample=a&grader=expect",
    ],
)
def test_what_repeats_the_checks_of_a_score_has_a_process(
    store: Store, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def answer(processes: RequestProcesses, request: Request) -> Response:
        del processes
        return Response(f"a process for {request.url.path}")

    monkeypatch.setattr(RequestProcesses, "answer", answer)
    with serving(store) as url:
        assert get(url + path).text == f"a process for {path.partition('?')[0]}"
