"""Authenticator: the user of a request's token, whether the token is valid now, and the rate limits.

The store is read for each request, so that a revoked token is refused at once. Wrong tokens are counted by client
address; tokens from `viva store token` cannot be guessed and are accepted even after too many wrong ones, so that
nobody is locked out by others at the same address.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from fastapi import Response
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from vivavoce.errors import StoreError
from vivavoce.server.limits import RateLimiter, asker_at
from vivavoce.server.refusals import for_program, refusal
from vivavoce.server.users import NOBODY, User, whoever_sits_here
from vivavoce.store.access import MAX_SECONDS, Rate, Token, digest_of, made_here
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.store import Store

COOKIE = "viva_session"
"""The cookie in which a browser keeps the id of its session."""

SECURE_COOKIE = f"__Host-{COOKIE}"
"""The name with TLS: browsers let no other host and no page without TLS set it. Without TLS they refuse the name."""

SESSION_SECONDS = int(MAX_SECONDS)
"""Seconds that a browser keeps the cookie; the store ends an idle session earlier."""

SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"

FORGET = 120.0
"""Seconds after which a client without a request has all of its limits again."""

LOOKUPS = 8
"""Tokens that are looked up at a time, so that waiting pages never block authentication."""


T = TypeVar("T")
R = TypeVar("R")


class Authenticator:
    """Authenticates requests; `digest` is the hash of an extra token, not in the store, whose holder may do everything.

    `proxied` means that requests come through a proxy on this machine, which names the client address of each; `secure`
    that browsers use TLS. `counts` says whether a request was counted so far.
    """

    def __init__(
        self,
        store: Store,
        digest: bytes | None = None,
        *,
        proxied: bool = False,
        secure: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._digest, self._proxied = store, digest, proxied
        self._secure = secure
        self._lookups = CapacityLimiter(LOOKUPS)
        self._reading = RateLimiter(50, burst=200, clock=clock)
        self._writing = RateLimiter(10, burst=100, clock=clock)
        self._guessing = RateLimiter(10 / 60, burst=10, clock=clock)
        self._exchanges = CapacityLimiter(1)
        self.counts = False

    async def admit(self, scope: Scope, headers: Headers, *, writes: bool) -> User | Response:
        """Return the user of a request, or the answer that refuses it.

        Raises:
            StoreError: the store cannot be read now.
        """
        path: str = scope["path"]
        if path.startswith("/static/"):
            return NOBODY
        at, secret = self.asker(scope, headers), bearer_in(headers)
        user = await self.user(secret, at) if secret else await self._visitor(headers)
        limited = self._limited(scope, user.id if user else at, writes=writes)
        if limited is not None:
            return limited
        if path in (SIGN_IN, SIGN_OUT):
            return user or NOBODY
        if user is None:
            return self._unknown(scope, headers, at, has_token=bool(secret))
        if writes and not user.may("write"):
            return refusal(scope, 403, user.lacking("write"))
        return user

    async def welcome(self, scope: Scope, headers: Headers, *, writes: bool) -> User | Response:
        """Return the user of a request to a server that requires no token: the holder of a valid one, if it has one.

        A wrong token in `Authorization` is refused, because what is saved would get another name. An unknown session is
        ignored: cookies know no ports, so it may be that of another server on this machine.

        Raises:
            StoreError: the store cannot be read now.
        """
        if scope["path"].startswith("/static/"):
            return whoever_sits_here()
        secret = bearer_in(headers)
        user = await self.user(secret, self.asker(scope, headers)) if secret else await self._visitor(headers)
        if user is None and secret:
            return refusal(scope, 401, "the token is invalid or expired; this server also accepts requests without one")
        if user is not None and writes and scope["path"] not in (SIGN_IN, SIGN_OUT) and not user.may("write"):
            return refusal(scope, 403, user.lacking("write"))
        return user or whoever_sits_here()

    def exchange(self) -> None:
        """Tell the other servers of the store what was asked here, and learn what they were asked.

        Raises:
            StoreError: the store cannot be written; it is told the next time.
        """
        kinds = {"read": self._reading, "write": self._writing, "guess": self._guessing}
        for kind, limiter in kinds.items():
            limiter.exchange(partial(self._spend, kind, limiter.rate))

    def forget(self) -> None:
        """Forget the clients that have not asked for so long that nothing limits them any more.

        Raises:
            StoreError: the store cannot be written.
        """
        self._store.rates.forget(FORGET)

    def _spend(self, kind: str, rate: Rate, taken: dict[str, int]) -> dict[str, float]:
        self.counts = True
        left = self._store.rates.spend(rate, {f"{kind} {who}": number for who, number in taken.items()})
        return {client.removeprefix(f"{kind} "): number for client, number in left.items()}

    async def _wrong(self, at: str) -> None:
        """Count a wrong token, at all servers before it is answered."""
        self._guessing.take(at)
        with suppress(StoreError):  # it is counted here, and at the others later
            await to_thread.run_sync(self.exchange, limiter=self._exchanges)

    async def user(self, secret: str, at: str) -> User | None:
        """Return the holder of a token, None if it is invalid; a wrong token counts against its client address.

        Raises:
            StoreError: the store cannot be read now.
        """
        guessed = not made_here(secret)
        if guessed and self.wait(at):
            return None
        if self._digest is not None and hmac.compare_digest(digest_of(secret), self._digest):
            return User("admin", "admin", "VIVAVOCE_TOKEN")
        found = None if guessed else await self._holder(secret)
        if found is None:
            await self._wrong(at)
            return None
        return User(found.name, found.role, found.id)

    async def begin_session(self, secret: str) -> str:
        """Return the cookie of a new session for the holder of a token, who was just admitted.

        Raises:
            StoreError: the store cannot be written now.
        """
        session_id = await self._look_up(self._store.sessions.begin, digest_of(secret))
        return self._cookie(session_id, SESSION_SECONDS)

    async def end_session(self, headers: Headers) -> str:
        """End the session of a request, and return the cookie that makes the browser forget it.

        Raises:
            StoreError: the store cannot be written now, so that the session is still open.
        """
        if session_id := self._session_id(headers):
            await self._look_up(self._store.sessions.end, session_id)
        return self._forgotten()

    async def _visitor(self, headers: Headers) -> User | None:
        """Return the user of the session in the cookie of a request, None if there is none.

        A session ends with its token: when it is revoked or expires, or is no longer that of the environment.
        """
        session_id = self._session_id(headers)
        if not session_id:
            return None
        digest = await self._look_up(self._store.sessions.token_digest, session_id)
        if digest is None:
            return None
        if self._digest is not None and hmac.compare_digest(digest, self._digest):
            return User("admin", "admin", "VIVAVOCE_TOKEN")
        holder = await self._look_up(self._store.tokens.holder_of, digest)
        return None if holder is None else User(holder.name, holder.role, holder.id)

    def _session_id(self, headers: Headers) -> str:
        return cookie_parser(headers.get("cookie", "")).get(SECURE_COOKIE if self._secure else COOKIE, "")

    def _cookie(self, value: str, seconds: int) -> str:
        name, secure = (SECURE_COOKIE, "; Secure") if self._secure else (COOKIE, "")
        return f"{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}"

    def _forgotten(self) -> str:
        return self._cookie("", 0)

    async def _holder(self, secret: str) -> Token | None:
        return await self._look_up(self._store.tokens.holder, secret)

    async def _look_up(self, find: Callable[[T], R], key: T) -> R:
        """Look something up: directly in a file, in a thread for a remote database."""
        if not is_postgresql(self._store.place):
            return find(key)
        return await to_thread.run_sync(find, key, limiter=self._lookups)

    def asker(self, scope: Scope, headers: Headers) -> str:
        """Return the client address of a request; behind a proxy, the one that the proxy reports."""
        client = scope.get("client")
        peer: str = client[0] if client else ""
        forwarded = headers.get("x-forwarded-for", "").rpartition(",")[2].strip() if self._proxied else ""
        return asker_at(forwarded if forwarded and peer in ("127.0.0.1", "::1") else peer)

    def wait(self, at: str) -> float:
        """Return the seconds until a client with too many wrong tokens may try again, 0 for others."""
        return self._guessing.wait(at)

    def _limited(self, scope: Scope, who: str, *, writes: bool) -> Response | None:
        seconds = (self._writing if writes else self._reading).take(who)
        return too_many(scope, seconds) if seconds else None

    def _unknown(self, scope: Scope, headers: Headers, at: str, *, has_token: bool) -> Response:
        """Answer a request without a valid token: a browser is redirected to the sign-in page."""
        if has_token and (seconds := self.wait(at)):
            return too_many(scope, seconds)
        if for_program(scope) or scope["method"] != "GET" or "authorization" in headers:
            challenge = {"www-authenticate": "Bearer"}
            return refusal(scope, 401, "a token is required: send it as Authorization: Bearer …, or sign in", challenge)
        here = quote(requested_path(scope), safe="/")
        gone = {"set-cookie": self._forgotten()} if self._session_id(headers) else {}
        return Response(status_code=303, headers={"location": f"{SIGN_IN}?next={here}", **gone})


def bearer_in(headers: Headers) -> str:
    """Return the token in the Authorization header of a request, empty if it has none."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def too_many(scope: Scope, seconds: float) -> Response:
    """Return the answer to too many requests."""
    wait = math.ceil(seconds)
    return refusal(scope, 429, f"too many requests; try again in {wait} s", {"retry-after": str(wait)})


def requested_path(scope: Scope) -> str:
    """Return the path and the query of a request as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")
