"""Request checks: hosts and origins, body sizes, and the headers that keep a page from loading anything else.

A browser on this machine sends requests for any page that it shows. So the requested host name must be one of ours (a
foreign page may point its own name here), and requests that change something must come from our own pages.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vivavoce.errors import StoreError
from vivavoce.server.authenticator import Authenticator
from vivavoce.server.refusals import for_program, refusal
from vivavoce.server.users import User, visitor, whoever_sits_here
from vivavoce.store.access import digest_of
from vivavoce.store.database.database import READING, Reading

MAX_BODY = 32_000_000
"""Maximum size of a request, in bytes."""

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that do not change anything."""

_FROM_OURS = frozenset(("same-origin", "none"))
"""Values of Sec-Fetch-Site for a request from one of our pages or from the user."""
_OF_FORMS = frozenset(("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"))
"""Content types that a foreign page can send without a preflight request."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The requirements on a request: `hosts` are the allowed host names with ports, `origins` are those of our pages.

    `demanded` means that a token is required: one of the store, or the one whose hash is `digest`. Only on a loopback
    address none is needed. `secure` means that browsers use TLS, so that cookies are sent only with TLS; `proxied`
    means that a proxy is in front of the server. `everywhere` means that the server listens on all addresses of this
    machine: then any numeric host is allowed, because a foreign page cannot use a numeric address as its name.
    """

    hosts: frozenset[str]
    origins: frozenset[str]
    digest: bytes | None = None
    demanded: bool = False
    secure: bool = False
    proxied: bool = False
    everywhere: bool = False

    @classmethod
    def of(
        cls,
        hosts: Iterable[str],
        token: str | None = None,
        *,
        demanded: bool = False,
        public: str | None = None,
        everywhere: bool = False,
    ) -> Access:
        """Return the access rules for these names; a token is required if one is passed, and only its hash is kept.

        `public` is the address that a proxy in front of the server has, such as `https://viva.example.org`.
        """
        addresses = {*(f"http://{host}" for host in hosts), *([public] if public else ())}
        return cls(
            hosts=frozenset(address.partition("://")[2] for address in addresses),
            origins=frozenset(addresses),
            digest=None if token is None else digest_of(token),
            demanded=demanded or token is not None,
            secure=public is not None and public.startswith("https://"),
            proxied=public is not None,
            everywhere=everywhere,
        )

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a forbidden request, None for an allowed one."""
        refused = self.refused_host(headers, writes=scope["method"] not in SAFE_METHODS)
        if refused is not None:
            return refusal(scope, *refused)
        if "transfer-encoding" in headers:
            return refusal(scope, 411, "the Content-Length header is missing")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return refusal(scope, 413, f"a request can have at most {MAX_BODY:,} bytes")
        if scope["method"] not in SAFE_METHODS and for_program(scope) and not _is_json(headers, length):
            return refusal(scope, 415, "send JSON, with content-type: application/json")
        return None

    def refused_host(self, headers: Headers, *, writes: bool = True) -> tuple[int, str] | None:
        """Return the status and the reason where a request names another host, or writes from a page of another."""
        host = headers.get("host", "")
        numeric = self.everywhere and _is_numeric(host)
        if host not in self.hosts and not numeric:
            return 421, "this server does not accept that host name; add it with --public"
        if not writes:
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        ours = origin is None or origin in self.origins or (numeric and origin == f"http://{host}")
        if not ours or (site is not None and site not in _FROM_OURS):
            return 403, "a request that changes something must come from a page of this server"
        return None


class AccessMiddleware:
    """Refuses forbidden requests, and adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access, authenticator: Authenticator) -> None:
        self.app, self.access, self._authenticator = app, access, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with its user."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", _cache_control(scope["path"], message["status"]))
            await send(message)

        refused = await self._refused(scope)
        await (refused or self.app)(scope, receive, guarded)

    async def _user(self, scope: Scope, headers: Headers) -> User | Response:
        admit = self._authenticator.admit if self.access.demanded else self._authenticator.welcome
        return await admit(scope, headers, writes=scope["method"] not in SAFE_METHODS)

    async def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        user = whoever_sits_here()
        refused = self.access.refusal(scope, headers)
        if refused is None:
            try:
                found = await self._user(scope, headers)
            except StoreError as error:
                found = refusal(scope, 503, str(error), {"retry-after": "5"})
            if isinstance(found, Response):
                return found
            user = found
        scope.setdefault("state", {})["user"] = user
        visitor.set(user)
        return refused


def _cache_control(path: str, status: int) -> str:
    """Return how long a browser keeps an answer; the name of a font has its version, so it never changes."""
    if path.startswith("/static/fonts/") and status in (200, 206, 304):
        return "public, max-age=31536000, immutable"
    return "no-cache" if path.startswith("/static/") else "no-store"


def _is_numeric(host: str) -> bool:
    """Return whether a host is a numeric address, with or without a port."""
    try:
        ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
    return True


def _is_json(headers: Headers, length: str) -> bool:
    """Return whether a body is JSON; a request without a body needs no content type, but must not declare a form."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (int(length) == 0 and kind not in _OF_FORMS)


class HeadMiddleware:
    """Answers HEAD like GET, but sends only the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def headers_only(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self.app({**scope, "method": "GET"}, receive, headers_only)


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def reading_once(route: APIRoute, handle: Handler) -> Handler:
    """Return a handler of a route, for GET one that reads the store as it is at one moment.

    Those that wait, or answer little by little, read as they go.
    """
    if "GET" not in (route.methods or ()) or iscoroutinefunction(route.endpoint):
        return handle

    async def handle_once(request: Request) -> Response:
        reading = Reading()
        before = READING.set(reading)
        try:
            return await handle(request)
        finally:
            READING.reset(before)
            await run_in_threadpool(reading.end)

    return handle_once
