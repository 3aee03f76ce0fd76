"""Serving: without a token on a loopback address, elsewhere only with a token."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

from vivavoce.errors import UsageError
from vivavoce.run.heap import RARELY
from vivavoce.safe_text import safe
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.server.connection import TimedConnection
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

EVERYWHERE = ("0.0.0.0", "::")
"""Hosts that mean all addresses of this machine; the server then accepts each of them, and its own name."""

PATIENCE = 5
"""Seconds that an answer in progress has when the server stops."""


class Server(uvicorn.Server):
    """Serves an application and stops its jobs first when it stops, so that event streams can end, too."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=TimedConnection,
                log_level="error",
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self._jobs = app.state.jobs

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop cleanly; finished work of jobs is stored, and the rest can be resumed."""
        for server in self.servers:
            server.close()
        await asyncio.to_thread(self._jobs.close)
        await super().shutdown(sockets)


def serve(
    store: Store,
    host: str,
    port: int,
    token: str | None = None,
    *,
    public: str | None = None,
    policy: ServerPolicy | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a store until it is stopped; port 0 chooses a free one, and `started` is called with the address.

    `public` is the address of a proxy in front of the server. If other machines can reach it, requests need `token` or
    one of the tokens of the store; on a loopback address only if `token` is set.

    Raises:
        UsageError: other machines can reach it and there is no token, an address is invalid, or it cannot be used.
    """
    public = None if public is None else public_address(public)
    others = public is not None or not is_loopback_name(host)
    if others and token is None and not store.tokens.any_good():
        raise UsageError(
            f"{public or host} can be reached from other machines, and this store has no token for them: make one with "
            "viva token create NAME --role admin, or set VIVAVOCE_TOKEN to a secret that requests must bring"
        )
    bound = listening(host, port)
    port = bound.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    loopback = ("localhost", "127.0.0.1", "[::1]") if is_loopback_name(host) else ()
    everywhere = host in EVERYWHERE
    name = socket.gethostname().lower()
    here = ("localhost", name, socket.getfqdn().lower()) if everywhere else ()
    names = {f"{name}:{port}" for name in (shown, *loopback, *here)}
    access = Access.of(names, token, demanded=others, public=public, everywhere=everywhere)
    app = create_app(store, access, policy)
    if started is not None:
        started(f"http://{name if everywhere else shown}:{port}/")
    with _rarely_collecting():
        asyncio.run(Server(app).serve(sockets=[bound]))


@contextmanager
def _rarely_collecting() -> Generator[None]:
    """Exclude long-lived objects from garbage collection, and collect rarely, so that no request waits for it."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def public_address(url: str) -> str:
    """Return the address of a proxy as browsers send it: scheme and host, in lower case, without the usual port.

    Raises:
        UsageError: it is not such an address, or has a path.
    """
    try:
        parts = urlsplit(url.lower())
        port, host = parts.port, parts.hostname
    except ValueError:
        parts, port, host = urlsplit(""), None, None
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in ("http", "https") or not host or rest:
        raise UsageError(f"--public takes an address such as https://viva.example.org, got {safe(url)!r}")
    usual = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + ("" if port in (None, usual) else f":{port}")


def is_loopback_name(host: str) -> bool:
    """Return whether an address is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket at an address.

    Raises:
        UsageError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only where a socket says that it is TCP
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)
    except (OSError, OverflowError) as error:
        bound.close()
        why = getattr(error, "strerror", None) or error
        hint = (
            "; choose another one with --port, or 0 for a free one"
            if getattr(error, "errno", 0) == errno.EADDRINUSE
            else ""
        )
        raise UsageError(f"cannot listen on {host}:{port}: {why}{hint}") from error
    return bound
