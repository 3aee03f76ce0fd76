"""Listening: without a token on a loopback address, elsewhere only with a token."""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from vivavoce.errors import UsageError
from vivavoce.safe_text import safe
from vivavoce.server.access import Access
from vivavoce.server.connection import BACKLOG
from vivavoce.store.store import Store

EVERYWHERE = ("0.0.0.0", "::")
"""Hosts that mean all addresses of this machine; the server then accepts each of them, and its own name."""


class Listening(NamedTuple):
    """A socket that listens, who may ask there, and its address for people."""

    bound: socket.socket
    access: Access
    address: str


def listen(store: Store, host: str, port: int, token: str | None = None, *, public: str | None = None) -> Listening:
    """Listen at an address; port 0 chooses a free one.

    `public` is the address of a proxy in front of the server. If other machines can reach it, requests need `token` or
    one of the tokens of the store; on a loopback address only if `token` is set.

    Raises:
        UsageError: other machines can reach it and there is no token, an address is invalid, or it cannot be used.
    """
    public = None if public is None else public_address(public)
    others = public is not None or not is_loopback_name(host)
    if others and token is None and not store.tokens.any_good():
        raise UsageError(
            f"{public or host} can be reached from other machines, but this store has no token: create one "
            "with viva store token create NAME --role admin, or set VIVAVOCE_TOKEN to a secret that requests "
            "must send"
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
    address = f"http://{name if everywhere else shown}:{port}/"
    return Listening(bound, access, address)


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
        bound.listen(BACKLOG)
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
