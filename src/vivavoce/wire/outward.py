"""A request to an address that a user named for this server to call: never one of a private network, unless allowed.

The name is looked up once and the connection goes to what was found and checked, so that a name which changes its
address in between leads nowhere else. Redirects are not followed, and no proxy is used.
"""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from vivavoce.errors import UsageError
from vivavoce.wire.http import checked_url

_NOT_IN_ADDRESSES = re.compile("[^!-~]")

TIMEOUT = 15.0
"""Seconds to connect; the answer may take as long again."""


def check_outward(url: str, *, private: bool) -> None:
    """Check that an address may be called.

    Raises:
        UsageError: it is not a web address, its host is not known, or it is private and `private` is False.
    """
    checked_url(url, "the address of a webhook")
    if _NOT_IN_ADDRESSES.search(url):
        raise UsageError(f"the address of a webhook has only visible ASCII characters: write others in {url!r} as %XX")
    _address(url, private=private)


def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    """Send a request, and return the status of the answer.

    Raises:
        UsageError: the address may not be called.
        OSError: it cannot be reached, or breaks off. HTTPException: the answer is not HTTP.
    """
    parts, (host, port) = urlsplit(url), _address(url, private=private)
    name = parts.hostname or ""
    opened = socket.create_connection((host, port), TIMEOUT)
    try:
        if parts.scheme == "https":
            with _in_time(opened):
                opened = ssl.create_default_context().wrap_socket(opened, server_hostname=name)
        connection = http.client.HTTPConnection(name, port, timeout=TIMEOUT)
        connection.sock = opened
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with _in_time(opened):
            connection.request("POST", path, body, {**headers, "host": parts.netloc, "connection": "close"})
            return connection.getresponse().status
    finally:
        opened.close()


@contextmanager
def _in_time(opened: socket.socket) -> Generator[None]:
    """End a connection that takes too long in all: a receiver may send a byte now and then, forever.

    Raises:
        TimeoutError: it took too long.
    """
    too_late = threading.Event()

    def end() -> None:
        too_late.set()
        with suppress(OSError):  # it has ended meanwhile
            socket.socket.shutdown(opened, socket.SHUT_RDWR)

    timer = threading.Timer(TIMEOUT, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if too_late.is_set():
            raise TimeoutError(f"no answer in {TIMEOUT:g} seconds") from error
        raise
    finally:
        timer.cancel()


def _address(url: str, *, private: bool) -> tuple[str, int]:
    """Return a number and a port to connect to."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"the host of '{url}' is not known: {error}") from error
    numbers = [str(address[4][0]) for address in addresses]
    if not private and not all(map(_is_public, numbers)):
        raise UsageError(
            f"'{parts.hostname}' is in a private network; start the server with --private-webhooks to allow that"
        )
    return numbers[0], port


_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose last 32 bits are an IPv4 address: NAT64, IPv4-compatible, and IPv4-translated."""

_RESERVED = tuple(
    map(
        ipaddress.ip_network,
        (
            *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
            *("64:ff9b:1::/48", "fec0::/10", "3fff::/20", "5f00::/16"),
        ),
    )
)
"""Networks that some versions of Python call global and no webhook may reach.

They are IETF protocols, the former 6to4 relays, Azure's wire server, NAT64 of a local network, site-local addresses,
documentation, and segment routing. Source: https://www.iana.org/assignments/iana-ipv6-special-registry
"""


def _is_public(number: str) -> bool:
    """Say whether an address, or the IPv4 address inside it, is of the public internet."""
    address = ipaddress.ip_address(number.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and any(address in network for network in _EMBEDDING):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            address = inner
    if any(address.version == network.version and address in network for network in _RESERVED):
        return False
    return address.is_global and not address.is_multicast
