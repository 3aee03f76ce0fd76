"""`Client`: sends HTTP requests, bounded in size and time; every way to fail has a name.

A fault's `kind` is `timeout`, `connection`, `rate_limit`, `http` (a status that is not a success), `size` or `format`.
Redirects are not followed: a conversation goes to the address the user named and to no other.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic_core import from_json

from vivavoce.errors import Fault, RateLimited, TargetFault, UsageError
from vivavoce.pacing.loops import PerLoop
from vivavoce.records.score import shorten
from vivavoce.wire.session import ExchangeError, HttpSession, Response

_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
NO_HEADERS: Mapping[str, str] = {}
LONG_SECRET = 16
"""Characters from which a secret is not a word that an answer could hold by chance."""
USER_IN_ADDRESS = "the address holds a user name or a password, which would be stored and shown; leave them out"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one client may do: connections at a time, seconds for an exchange, bytes of an answer."""

    concurrency: int = 64
    timeout: float = 300.0
    size: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent with a success status; `source` names the request in messages, `fault` whose failure it is."""

    source: str
    body: bytes
    charset: str = "utf-8"
    cookies: Mapping[str, str] = field(default_factory=dict[str, str])
    fault: type[Fault] = TargetFault

    @property
    def text(self) -> str:
        """The body as text; bytes that do not fit the charset become replacement characters."""
        return _decode(self.body, self.charset)

    def json(self) -> Any:
        """Return the body read as JSON.

        Raises:
            Fault: of kind `format`, with the beginning of the body as evidence.
        """
        try:
            return from_json(self.body)
        except ValueError:
            return self._json_of_others()

    def _json_of_others(self) -> Any:
        """Return the body as the standard library reads it, which takes more, or explains what is wrong."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise self.malformed_fault(f"is not JSON: {error}") from error

    def malformed_fault(self, what: str) -> Fault:
        """Return the fault to raise for an answer that is not as expected."""
        return self.fault(f"{self.source}: the answer {what}", kind="format", evidence=shorten(self.text))


class Client:
    """Requests over kept connections, opened when first needed and as many as `limits.concurrency`.

    `secrets` are cut out of failures, and long ones out of answers too, so that a server which repeats a key does not
    put it in a record. A short one, such as the `test` that local servers take for a key, may be a word of the answer.
    `fault` is the kind of failure to raise. Each event loop has connections of its own.
    """

    def __init__(
        self, limits: Limits | None = None, secrets: Iterable[str] = (), fault: type[Fault] = TargetFault
    ) -> None:
        self.limits = limits or Limits()
        self.fault = fault
        self._secrets = tuple(secret.encode() for secret in secrets if secret)
        self._proxies: dict[str, str | None] = {}
        concurrency, size = self.limits.concurrency, self.limits.size
        self._sessions = PerLoop(lambda: HttpSession(concurrency, size), lambda session: session.drop())

    async def request(
        self,
        method: str,
        url: str,
        data: bytes | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        repeatable: bool = False,
    ) -> Answer:
        """Send one request and return its answer; `repeatable` says that sending it twice does no harm.

        Raises:
            RateLimited: status 429, or 503 with a Retry-After.
            Fault: anything else; `retryable` when the request never arrived, or is repeatable and the
                connection, the time or the server (5xx) failed.
        """
        source = self._hide_text(f"{method} {_place(url)}")
        limit = asyncio.timeout(self.limits.timeout or None)
        try:
            async with limit:
                response = await self._sessions.get().exchange(method, url, data, headers, self._proxy(url))
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"{source}: no answer within {self.limits.timeout:g} s"
            raise self.fault(message, kind="timeout", retryable=repeatable) from error
        except ExchangeError as error:
            raise self._connection_fault(error, source, repeatable) from error
        if response.is_cut:
            raise self._too_large(response, source)
        charset = _charset(response.header("Content-Type"))
        if 200 <= response.status < 300:
            body = self._hide(response.body, LONG_SECRET)
            cookies = _cookies(response) if "Set-Cookie" in response.headers else {}
            return Answer(source, body, charset, cookies, self.fault)
        raise self._status_fault(response, source, charset, repeatable)

    async def close(self) -> None:
        """Close the connections of this event loop; a later request opens new ones."""
        if (session := self._sessions.take()) is not None:
            await session.close()

    def _too_large(self, response: Response, source: str) -> Fault:
        return self.fault(
            f"{source}: the answer is larger than {self.limits.size:,} bytes; reading stopped",
            kind="size",
            evidence=shorten(_decode(self._hide(response.body[:20_000]), "utf-8")),
        )

    def _status_fault(self, response: Response, source: str, charset: str, repeatable: bool) -> Fault:
        status, wait = response.status, response.header("Retry-After")
        evidence = shorten(_decode(self._hide(response.body), charset))
        message = f"{source} answered {status} {self._hide_text(response.reason)}".rstrip()
        if 300 <= status < 400:
            place = self._hide_text(_place(response.header("Location") or "").removeprefix("://"))
            return self.fault(f"{message} to '{place}'; redirects are not followed, so use that address", kind="http")
        if status == 429 or (status == 503 and wait):
            after, blame = retry_after(wait), self.fault.blame
            return RateLimited(message, retry_after=after, evidence=evidence, blame=blame, status=status)
        again = repeatable and status >= 500
        return self.fault(message, kind="http", evidence=evidence, retryable=again, status=status)

    def _connection_fault(self, error: ExchangeError, source: str, repeatable: bool) -> Fault:
        problem = self._hide_text(str(error))
        if error.stage == "tls":
            return self.fault(f"{source}: no secure connection: {problem}", kind="connection")
        if error.stage == "connect":
            return self.fault(f"{source}: cannot connect: {problem}", kind="connection", retryable=True)
        if error.stage == "format":
            return self.fault(f"{source}: the answer is not HTTP: {problem}", kind="format")
        return self.fault(f"{source}: the connection broke: {problem}", kind="connection", retryable=repeatable)

    def _hide_text(self, text: str) -> str:
        return self._hide(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")

    def _hide(self, body: bytes, length: int = 1) -> bytes:
        for secret in self._secrets:
            if len(secret) >= length:
                body = body.replace(secret, b"***")
        return body

    def _proxy(self, url: str) -> str | None:
        """Return the proxy of the environment; aiohttp's own look-up would also send passwords out of ~/.netrc."""
        parts = urlsplit(url)
        if parts.netloc not in self._proxies:
            direct = is_loopback(url) or proxy_bypass(parts.netloc)
            self._proxies[parts.netloc] = None if direct else getproxies().get(parts.scheme)
        return self._proxies[parts.netloc]


def checked_url(url: str, what: str) -> str:
    """Return a web address unchanged.

    Raises:
        UsageError: it is not an http(s) address with a host, or holds a user name or a password.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        safe_url = re.sub(r"(?s).*@", "***@", url)  # a password with a slash in it makes an address that is not one
        raise UsageError(f"{what}: '{safe_url}' is not a web address such as http://localhost:8000/v1")
    if holds_user(url):
        raise UsageError(f"{what}: {USER_IN_ADDRESS}")
    return url


def holds_user(url: str) -> bool:
    """Say whether an address holds a user name or a password, as in `http://user:password@host`."""
    return bool(re.match(r"(https?|wss?):/*[^/?#]*@", url.strip(), re.IGNORECASE))


def is_loopback(url: str) -> bool:
    """Say whether an address stays on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def retry_after(value: str | None) -> float | None:
    """Return the seconds to wait that a Retry-After header asks for, given as seconds or as an HTTP date (RFC 9110)."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


@lru_cache(maxsize=256)
def _place(url: str) -> str:
    """Return an address without user, password and query, where keys hide."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@lru_cache(maxsize=64)
def _charset(content_type: str | None) -> str:
    match = _CHARSET.search(content_type or "")
    return match[1] if match else "utf-8"


def _cookies(response: Response) -> dict[str, str]:
    """Return the cookies that an answer sets, as browsers read them (RFC 6265, 5.2)."""
    set_here = (line.partition(";")[0].partition("=") for line in response.header_values("Set-Cookie"))
    return {name.strip(): value.strip().strip('"') for name, sign, value in set_here if sign and name.strip()}


def _decode(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, errors="replace")
    except (LookupError, ValueError):  # the server names a charset that is unknown, or for other uses than texts
        return body.decode("utf-8", errors="replace")
