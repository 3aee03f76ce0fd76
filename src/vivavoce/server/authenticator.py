"""Authenticator: whose token a request brings, whether it is good now, and how often its holder may ask.

The store is asked anew for each request, so that a token which is revoked is refused at once. Wrong guesses are counted
by the address they come from; what was made by `viva token` cannot be guessed and is looked up even where there were
too many, so that nobody is shut out by whom they share an address with.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable
from urllib.parse import quote, unquote

from anyio import CapacityLimiter, to_thread
from fastapi import Response
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from vivavoce.server.limits import RateLimiter, asker_at
from vivavoce.server.refusals import for_program, refusal
from vivavoce.server.users import NOBODY, User
from vivavoce.store.access.tokens import Token, digest_of, made_here
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.store import Store

COOKIE = "viva_token"
"""The cookie in which a browser keeps its token."""

SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"

FORGOTTEN = f"{COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
"""What a browser is told so that it lets go of a token."""

LOOKUPS = 8
"""Tokens that are looked up at a time; a page that waits for a thread never keeps others from being let in."""


class Authenticator:
    """Lets requests in; `digest` is the hash of a token besides those of the store, whose holder may do everything.

    `proxied` says that requests come by a proxy on this machine, which says whom each is from.
    """

    def __init__(
        self,
        store: Store,
        digest: bytes | None = None,
        *,
        proxied: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._digest, self._proxied = store, digest, proxied
        self._lookups = CapacityLimiter(LOOKUPS)
        self._reading = RateLimiter(50, burst=200, clock=clock)
        self._writing = RateLimiter(10, burst=100, clock=clock)
        self._guessing = RateLimiter(10 / 60, burst=10, clock=clock)

    async def admit(self, scope: Scope, headers: Headers, *, writes: bool) -> User | Response:
        """Return whom a request comes from, or the answer that refuses it.

        Raises:
            StoreError: the store cannot be read now.
        """
        path: str = scope["path"]
        if path.startswith("/static/"):
            return NOBODY
        at, secret = self.asker(scope, headers), token_in(headers)
        user = await self.user(secret, at) if secret else None
        limited = self._limited(scope, user.id if user else at, writes=writes)
        if limited is not None:
            return limited
        if path in (SIGN_IN, SIGN_OUT):
            return user or NOBODY
        if user is None:
            return self._unknown(scope, headers, at, given=bool(secret))
        if writes and not user.may("write"):
            return refusal(scope, 403, user.lacking("write"))
        return user

    async def user(self, secret: str, at: str) -> User | None:
        """Return the holder of a token, None where it is none; a wrong one counts against whom it comes from.

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
            self._guessing.take(at)
            return None
        return User(found.name, found.role, found.id)

    async def _holder(self, secret: str) -> Token | None:
        """Look a token up: a file answers sooner than a thread could be woken, a database may be far away."""
        if not is_postgresql(self._store.place):
            return self._store.tokens.holder(secret)
        return await to_thread.run_sync(self._store.tokens.holder, secret, limiter=self._lookups)

    def asker(self, scope: Scope, headers: Headers) -> str:
        """Return who asks, by the address; behind a proxy of ours, by the one that it was asked from."""
        client = scope.get("client")
        peer: str = client[0] if client else ""
        told = headers.get("x-forwarded-for", "").rpartition(",")[2].strip() if self._proxied else ""
        return asker_at(told if told and peer in ("127.0.0.1", "::1") else peer)

    def wait(self, at: str) -> float:
        """Return the seconds until somebody who has guessed wrong too often may guess again, 0 for anybody else."""
        return self._guessing.wait(at)

    def _limited(self, scope: Scope, who: str, *, writes: bool) -> Response | None:
        seconds = (self._writing if writes else self._reading).take(who)
        return too_many(scope, seconds) if seconds else None

    def _unknown(self, scope: Scope, headers: Headers, at: str, *, given: bool) -> Response:
        """Answer a request without a good token: a person is shown where to sign in."""
        if given and (seconds := self.wait(at)):
            return too_many(scope, seconds)
        if for_program(scope) or scope["method"] != "GET" or "authorization" in headers:
            challenge = {"www-authenticate": "Bearer"}
            return refusal(scope, 401, "a token is needed: send it as Authorization: Bearer …, or sign in", challenge)
        here = quote(_asked_for(scope), safe="/")
        gone = {"set-cookie": FORGOTTEN} if given else {}
        return Response(status_code=303, headers={"location": f"{SIGN_IN}?next={here}", **gone})


def token_in(headers: Headers) -> str:
    """Return the token that a request brings, empty where it brings none."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token.strip()
    return unquote(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))


def too_many(scope: Scope, seconds: float) -> Response:
    """Return the answer to one request too many."""
    wait = math.ceil(seconds)
    return refusal(scope, 429, f"too many requests; try again in {wait} s", {"retry-after": str(wait)})


def _asked_for(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")
