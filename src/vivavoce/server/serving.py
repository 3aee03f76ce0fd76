"""Serving: on a loopback address for whoever sits here, elsewhere only for those who bring a token."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from vivavoce.errors import UsageError
from vivavoce.server.access import Access
from vivavoce.server.allowed import Allowed
from vivavoce.server.app import create_app
from vivavoce.store.store import Store

PATIENCE = 5
"""Seconds that an answer under way has when the server ends."""


class Server(uvicorn.Server):
    """Serves an application, and when it ends, first ends its jobs: what waits for their news can end then, too."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="error",
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=PATIENCE,
            )
        )
        self._jobs = app.state.jobs

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in good order; what jobs have finished is kept, and the rest can be resumed."""
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
    allowed: Allowed | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a store until somebody ends it; port 0 takes a free one, and `started` is told the address.

    Raises:
        UsageError: the address is not of this machine alone and there is no token, or it cannot be used.
    """
    if token is None and not is_loopback_name(host):
        raise UsageError(
            f"{host} can be reached from other machines: set VIVAVOCE_TOKEN to a secret that requests must bring"
        )
    bound = listening(host, port)
    port = bound.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    loopback = ("localhost", "127.0.0.1", "[::1]") if is_loopback_name(host) else ()
    app = create_app(store, Access.of({f"{name}:{port}" for name in (shown, *loopback)}, token), allowed)
    if started is not None:
        started(f"http://{shown}:{port}/")
    asyncio.run(Server(app).serve(sockets=[bound]))


def is_loopback_name(host: str) -> bool:
    """Say whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int) -> socket.socket:
    """Return a socket at an address, where requests wait from now on.

    Raises:
        UsageError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)
    except (OSError, OverflowError) as error:
        bound.close()
        raise UsageError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from error
    return bound
