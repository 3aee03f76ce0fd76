"""Who may ask what: hosts and origins, tokens, sizes, and the headers that keep a page from loading anything else.

A browser on this machine will send requests for any page it shows. So the name that it asked for must be one of ours
(a page elsewhere may have its own name point here), and what changes something must come from our own pages.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vivavoce.server.users import whoever_sits_here

COOKIE = "viva_token"
"""The cookie in which a browser keeps its token."""

MAX_BODY = 32_000_000
"""Bytes that a request may have."""

_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Access:
    """What is asked of a request; `hosts` are the names, with their port, that it may be for.

    `digest` is that of the token it must bring, None where none is needed, which is right on a loopback address only.
    """

    hosts: frozenset[str]
    digest: bytes | None = None

    @classmethod
    def of(cls, hosts: Iterable[str], token: str | None = None) -> Access:
        """Return the access for these names; only the hash of the token is kept."""
        return cls(frozenset(hosts), None if token is None else digest_of(token))

    def refusal(self, scope: Scope) -> PlainTextResponse | None:
        """Return the answer to a request that may not be made, None for one that may."""
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self.hosts:
            return PlainTextResponse("this server does not answer to that name\n", 421)
        if scope["method"] not in _READING:
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2] not in self.hosts:
                return PlainTextResponse("what changes something must come from a page of this server\n", 403)
            if "content-length" not in headers and "transfer-encoding" in headers:
                return PlainTextResponse("say how long the body is, in Content-Length\n", 411)
        if not headers.get("content-length", "0").isdecimal() or int(headers.get("content-length", "0")) > MAX_BODY:
            return PlainTextResponse(f"a request may have {MAX_BODY:,} bytes\n", 413)
        if self.digest is not None and not hmac.compare_digest(digest_of(_token(headers)), self.digest):
            challenge = {"www-authenticate": "Bearer"}
            return PlainTextResponse("a token is needed: send it as Authorization: Bearer …\n", 401, challenge)
        return None


class AccessMiddleware:
    """Refuses what may not be asked, and sends every answer with the headers that browsers heed."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refused = self.access.refusal(scope)
        scope.setdefault("state", {})["user"] = whoever_sits_here()
        await (refused or self.app)(scope, receive, guarded)


def digest_of(token: str) -> bytes:
    """Return the hash of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _token(headers: Headers) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token.strip()
    try:
        kept = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return kept.value if kept else ""
