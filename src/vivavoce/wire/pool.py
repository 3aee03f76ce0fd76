"""`Pool`: the connections of one event loop, each kept a while for the next request to the same server."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import defaultdict
from contextlib import suppress
from functools import cache
from typing import Any

from vivavoce.wire.connection import Connection
from vivavoce.wire.exchange import Broken, Response
from vivavoce.wire.request import Origin

KEPT = 15.0
"""Seconds for which a connection that nobody uses is taken again."""
KNOWN = 10.0
"""Seconds for which the addresses of a host are not looked up again."""
NEXT_ADDRESS = 0.25
"""Seconds after which the next address of a host is tried beside the first (RFC 8305)."""
REPEATED = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))
"""Methods that are sent once more where the connection broke (RFC 9110, 9.2.2)."""

Addresses = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]]


class Pool:
    """Up to `concurrency` exchanges at a time, each over a connection of its own; answers have up to `size` bytes."""

    def __init__(self, concurrency: int, size: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._size = size
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._opened: set[Connection] = set()
        self._found: dict[Origin, tuple[float, asyncio.Task[Addresses]]] = {}

    async def exchange(self, origin: Origin, method: str, request: bytes) -> Response:
        """Send a request over a free connection, or a new one, and return the answer.

        Raises:
            Broken: there is no whole answer.
        """
        async with self._slots:
            try:
                return await self._once(origin, request, has_body=method != "HEAD")
            except Broken as broken:
                if broken.stage != "silence" or method not in REPEATED:
                    raise
            return await self._once(origin, request, has_body=method != "HEAD")

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._opened:
            connection.abort()
        self._opened.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # the loop closes their sockets in its next round

    async def _once(self, origin: Origin, request: bytes, *, has_body: bool) -> Response:
        connection = self._kept(origin) or await self._connected(origin)
        try:
            return await connection.exchange(request, has_body=has_body)
        finally:
            if connection.kept_since is not None:
                self._idle[origin].append(connection)
            else:
                self._opened.discard(connection)

    def _kept(self, origin: Origin) -> Connection | None:
        """Return the connection that was used last, and let go of those that nobody used for long."""
        idle = self._idle[origin]
        oldest = asyncio.get_running_loop().time() - KEPT
        while idle:
            connection = idle.pop()
            if connection.kept_since is not None and connection.kept_since >= oldest:
                return connection
            connection.abort()
            self._opened.discard(connection)
        return None

    async def _connected(self, origin: Origin) -> Connection:
        from aiohappyeyeballs import start_connection  # pyright: ignore[reportUnknownVariableType]

        loop = asyncio.get_running_loop()
        connection = Connection(self._size)
        try:
            addresses = await self._addresses(origin)
            opened = await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1, loop=loop)
        except OSError as error:
            raise Broken(str(error), "connect") from error
        context, name = (trusted(), origin.host) if origin.secure else (None, None)
        try:
            await loop.create_connection(lambda: connection, sock=opened, ssl=context, server_hostname=name)
        except OSError as error:
            stage = "tls" if isinstance(error, ssl.SSLError) else "connect"
            raise Broken(str(error) or type(error).__name__, stage) from error
        self._opened.add(connection)
        return connection

    async def _addresses(self, origin: Origin) -> Addresses:
        """Look a host up once for all who wait for it."""
        loop = asyncio.get_running_loop()
        since, lookup = self._found.get(origin, (-KNOWN, None))
        if lookup is None or since + KNOWN < loop.time() or (lookup.done() and _failed(lookup)):
            lookup = loop.create_task(looked_up(origin))
            lookup.add_done_callback(_failed)  # a failure that nobody waits for any more is not news
            self._found[origin] = loop.time(), lookup
        return await asyncio.shield(lookup)


async def looked_up(origin: Origin) -> Addresses:
    """Return the addresses of a host.

    Raises:
        OSError: it has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    return list(found)


def _failed(lookup: asyncio.Task[Addresses]) -> bool:
    return lookup.cancelled() or lookup.exception() is not None


@cache
def trusted() -> ssl.SSLContext:
    """Return what the machine trusts, or the files that SSL_CERT_FILE and SSL_CERT_DIR name."""
    context = ssl.create_default_context()
    with suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context
