"""Serving: on a loopback address for whoever sits here, elsewhere only for those who bring a token."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable

import uvicorn

from vivavoce.errors import UsageError
from vivavoce.server.access import Access
from vivavoce.server.app import create_app
from vivavoce.store.store import Store


def serve(
    store: Store, host: str, port: int, token: str | None = None, started: Callable[[str], None] | None = None
) -> None:
    """Serve a store until somebody ends it; port 0 takes a free one, and `started` is told the address.

    Raises:
        UsageError: the address is not of this machine alone and there is no token, or it cannot be used.
    """
    if token is None and not is_loopback_name(host):
        raise UsageError(
            f"{host} can be reached from other machines: set VIVAVOCE_TOKEN to a secret that requests must bring"
        )
    bound = _bound(host, port)
    port = bound.getsockname()[1]
    names = {f"{name}:{port}" for name in (host, *(("localhost", "127.0.0.1", "[::1]") if token is None else ()))}
    app = create_app(store, Access.of(names, token))
    config = uvicorn.Config(app, log_level="warning", server_header=False, proxy_headers=False)
    if started is not None:
        started(f"http://{host}:{port}/")
    asyncio.run(uvicorn.Server(config).serve(sockets=[bound]))


def is_loopback_name(host: str) -> bool:
    """Say whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return bound
