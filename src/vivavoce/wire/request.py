"""A request as the bytes that HTTP/1.1 sends, and where they go."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAKS = re.compile(r"[\r\n\0]")
_FRAMING = frozenset(("content-length", "transfer-encoding"))
"""Headers that say where a body ends, which is decided here."""
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))


class Origin(NamedTuple):
    """The server that an address is on."""

    host: str
    port: int
    secure: bool


class Address(NamedTuple):
    """A web address in the parts that a request is made of; `user` is the header for the user named in it."""

    origin: Origin
    path: str
    host: str
    user: str | None


@lru_cache(maxsize=256)
def parsed(url: str) -> Address:
    """Return the parts of an address, escaped as HTTP needs them."""
    from yarl import URL

    address = URL(url)
    origin = Origin(address.raw_host or "", address.port or 80, address.scheme == "https")
    user = None
    if address.user is not None or address.password is not None:
        user = b64encode(f"{address.user or ''}:{address.password or ''}".encode("latin-1")).decode()
    return Address(origin, address.raw_path_qs, address.host_port_subcomponent or "", user and f"Basic {user}")


def encoded(method: str, address: Address, headers: Mapping[str, str], data: bytes | None) -> bytes:
    """Return a request as it is sent.

    Raises:
        ValueError: the method or a header would end its line early, or is none.
    """
    head = _head(method, address, tuple(headers.items()), data is not None)
    if data is None:
        return head + (b"Content-Length: 0\r\n\r\n" if method in _WITH_BODY else b"\r\n")
    return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(data), data)


@lru_cache(maxsize=64)
def _head(method: str, address: Address, headers: tuple[tuple[str, str], ...], has_body: bool) -> bytes:
    """Return the head but for the length of the body."""
    sent = {
        "Host": address.host,
        "User-Agent": "vivavoce",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
    }
    if has_body:
        sent["Content-Type"] = "application/octet-stream"
    if address.user is not None:
        sent["Authorization"] = address.user
    names = {name.lower(): name for name in sent}
    for name, value in headers:
        sent.pop(names.get(name.lower(), ""), None)
        if name.lower() not in _FRAMING:
            sent[name] = value
    for part in (method, *sent):
        if not _TOKEN.fullmatch(part):
            raise ValueError(f"{part!r} is not a name of a method or a header")
    for name, value in sent.items():
        if _BREAKS.search(value):
            raise ValueError(f"the header {name} holds a line break or a null character")
    lines = [f"{method} {address.path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return "".join(f"{line}\r\n" for line in lines).encode()
