"""The real server on a free port of this machine, in a thread of its own, and a plain client for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn.server
from fastapi import FastAPI

from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.authenticator import COOKIE
from vivavoce.server.listening import listening
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.serving import Server
from vivavoce.store.access import digest_of
from vivavoce.store.store import Store


class _Hurried(ModuleType):
    """What uvicorn's server knows as `asyncio`, with short waits.

    It looks ten times a second whether it should end, and then waits as long again; tests end hundreds of servers.
    """

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 20)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


uvicorn.server.asyncio = _Hurried("asyncio")  # pyright: ignore[reportPrivateImportUsage]

NO_HEADERS: Mapping[str, str] = {}


class Reply(NamedTuple):
    """What came back; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def serving(
    store: Store,
    policy: ServerPolicy | None = None,
    token: str | None = None,
    *,
    demanded: bool = False,
    public: str | None = None,
) -> Generator[str]:
    """Serve a store as long as the block lasts, and give the address without a slash at the end.

    `demanded` has requests bring a token of the store, as on an address that others can reach.
    """
    bound = listening("127.0.0.1", 0)
    port = bound.getsockname()[1]
    access = Access.of({f"127.0.0.1:{port}"}, token, demanded=demanded, public=public)
    with running(create_app(store, access, policy), bound):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(app: FastAPI, bound: socket.socket) -> Generator[None]:
    """Run an application at a socket as long as the block lasts."""
    server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="server")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


def cookie_of(store: Store, secret: str) -> str:
    """Return the cookie of a browser in which the holder of a token has signed in."""
    return f"{COOKIE}={store.sessions.begin(digest_of(secret))}"


def send(method: str, url: str, body: object = None, headers: Mapping[str, str] = NO_HEADERS) -> Reply:
    """Send a request; a body of bytes is sent as it is, any other as JSON."""
    parts = urlsplit(url)
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json"} if data is not None else {}
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target or "/", data, {**given, **headers})
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def get(url: str, headers: Mapping[str, str] = NO_HEADERS) -> Reply:
    """Fetch something."""
    return send("GET", url, headers=headers)
