"""`HttpSession`: sends requests with aiohttp, under our rules; `open_session` applies the rules for other users.

aiohttp does not follow redirects, keep cookies, read proxies or passwords from the environment, or decompress bodies
here. It repeats a request once where the connection broke, if the method is idempotent (RFC 9110, 9.2.2), and never a
POST or PATCH.
"""

from __future__ import annotations

import asyncio
import re
import weakref
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from aiohttp import (
        ClientRequest,
        ClientResponse,
        ClientSession,
        ClientTimeout,
        TCPConnector,
        TraceConfig,
        TraceRequestRedirectParams,
    )
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace
    from multidict import CIMultiDictProxy

KEEP_ALIVE_SECONDS = 15.0
"""How long an idle connection may be used again."""
MAX_HEADER_BYTES = 65_536
"""Size of one line in the head of an answer."""
BUFFER_BYTES = 65_536
"""How much of an answer aiohttp reads ahead."""
MAX_UNCHUNKED_BYTES = 2**20
"""Size of a body that aiohttp sends in one piece without a warning."""

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
"""zlib tells them apart by how they begin."""
_COMPRESSED = frozenset(("gzip", "x-gzip", "deflate"))
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAKS = re.compile(r"[\r\n\0]")
_QUOTED_BYTES = re.compile(r""":?\s*(?:\n|b['"])""")
_FRAMING = frozenset(("content-length", "transfer-encoding"))
"""Headers that say where a body ends; aiohttp writes them."""

Stage = Literal["connect", "tls", "answer", "format"]
"""Where an exchange failed: no connection, no secure one, one that broke before the end of the answer, not HTTP."""


class ExchangeError(Exception):
    """A request has no whole answer; `stage` says how far it came."""

    def __init__(self, problem: str, stage: Stage) -> None:
        super().__init__(problem)
        self.stage: Stage = stage


@dataclass(frozen=True, slots=True)
class Response:
    """What a server sent; the body is unpacked, and `is_cut` where it is larger than allowed and reading stopped."""

    status: int
    reason: str
    headers: CIMultiDictProxy[str]
    body: bytes
    is_cut: bool

    def header(self, name: str) -> str | None:
        """Return the first value of a header, None where it was not sent."""
        value = self.headers.get(name)
        return None if value is None else _repair(value)

    def header_values(self, name: str) -> list[str]:
        """Return every value of a header, in the order they were sent."""
        return [_repair(value) for value in self.headers.getall(name, ())]


class _Body:
    """Collects a body up to `max_bytes`, uncompressed; `is_cut` says that there is more."""

    def __init__(self, max_bytes: int, encodings: Sequence[str]) -> None:
        encoding = ", ".join(encodings).strip().lower()
        if encoding not in _COMPRESSED and encoding not in ("", "identity"):
            raise ExchangeError(f"its encoding '{encoding}' is not supported", "format")
        self.is_cut = False
        self._max_bytes = max_bytes
        self._chunks: list[bytes] = []
        self._length = 0
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB) if encoding in _COMPRESSED else None

    def add(self, chunk: bytes) -> None:
        """Add a chunk as it came.

        Raises:
            ExchangeError: it is not compressed as the answer says.
        """
        if self._decompressor is not None:
            chunk = self._decompress(chunk)
        self._chunks.append(chunk)
        self._length += len(chunk)
        self.is_cut = self._length > self._max_bytes

    def join(self) -> bytes:
        """Return the whole body.

        Raises:
            ExchangeError: the end of a compressed body is missing.
        """
        if self._chunks and self._decompressor is not None and not self._decompressor.eof and not self.is_cut:
            raise ExchangeError("the compressed response is incomplete", "answer")
        return b"".join(self._chunks)

    def _decompress(self, chunk: bytes) -> bytes:
        if not self._chunks and chunk[0] != 0x1F and chunk[0] & 0x0F != zlib.DEFLATED:
            self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)  # deflate without its head, which some send
        assert self._decompressor is not None
        try:
            plain = self._decompressor.decompress(chunk, self._max_bytes + 1 - self._length)
        except zlib.error as error:
            raise ExchangeError(f"the compressed answer is damaged: {error}", "answer") from error
        if self._decompressor.unused_data:
            raise ExchangeError("the compressed response has data after its end", "answer")
        return plain


class HttpSession:
    """Runs up to `concurrency` exchanges at a time in one event loop; answers have up to `max_bytes`."""

    def __init__(self, concurrency: int, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._session = open_session(concurrency)
        self.drop = weakref.finalize(self, self._session.detach)
        """Let the connections of an event loop that ended go."""

    async def exchange(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str], proxy: str | None = None
    ) -> Response:
        """Send a request and return the answer.

        Raises:
            ExchangeError: there is no whole answer.
            ValueError: the method or a header cannot be sent.
        """
        import aiohttp

        checked = check_head(method, tuple(headers.items()))
        body = data if data is None or len(data) <= MAX_UNCHUNKED_BYTES else BytesIO(data)
        try:
            response = await self._session.request(
                method, url, data=body, headers=checked, proxy=proxy, allow_redirects=False, auto_decompress=False
            )
            try:
                return await self._read(response)  # aiohttp releases the connection at the end of the body
            except BaseException:
                response.close()
                raise
        except aiohttp.ClientSSLError as error:
            raise ExchangeError(str(error.__cause__ or error), "tls") from error
        except aiohttp.ClientConnectorError as error:
            raise ExchangeError(str(error.os_error), "connect") from error
        except aiohttp.ClientHttpProxyError as error:
            raise ExchangeError(f"the proxy answered {error.status} {error.message}".rstrip(), "connect") from error
        except aiohttp.ClientResponseError as error:
            raise ExchangeError(_summarize(error.message), "format") from error
        except asyncio.CancelledError as error:
            if not self._session.closed or ((task := asyncio.current_task()) and task.cancelling()):
                raise
            raise ExchangeError("the client was closed", "answer") from error  # aiohttp cancels those who wait for it
        except (aiohttp.ClientError, OSError) as error:
            raise ExchangeError(_summarize(str(error)) or type(error).__name__, "answer") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()
        self.drop()

    async def _read(self, response: ClientResponse) -> Response:
        body = _Body(self._max_bytes, response.headers.getall("Content-Encoding", ()))
        while chunk := await response.content.readany():
            body.add(chunk)
            if body.is_cut:
                response.close()
                break
        return Response(response.status, _repair(response.reason or ""), response.headers, body.join(), body.is_cut)


def open_session(
    concurrency: int,
    *,
    timeout: ClientTimeout | None = None,
    buffer_bytes: int = BUFFER_BYTES,
    is_websocket: bool = False,
) -> ClientSession:
    """Open a session of aiohttp in the running event loop; without a `timeout`, the caller limits the time.

    Requests must set `allow_redirects=False`. `ws_connect` has no such option: with `is_websocket`, it raises
    `WSServerHandshakeError` for a redirect, which would take the headers of the user to another server.
    """
    import aiohttp

    return aiohttp.ClientSession(
        connector=_connector_class()(
            limit=concurrency, keepalive_timeout=KEEP_ALIVE_SECONDS, resolver=aiohttp.ThreadedResolver()
        ),
        timeout=timeout or aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),  # a shared jar would join conversations that must stay apart
        headers={"User-Agent": "vivavoce"},
        read_bufsize=buffer_bytes,
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        trace_configs=[_redirect_refusal()] if is_websocket else None,
    )


def _redirect_refusal() -> TraceConfig:
    from aiohttp import TraceConfig, WSServerHandshakeError

    async def refuse(session: ClientSession, context: object, params: TraceRequestRedirectParams) -> None:
        response = params.response
        response.close()
        raise WSServerHandshakeError(response.request_info, (), status=response.status)

    config = TraceConfig()
    config.on_request_redirect.append(refuse)
    return config


@lru_cache(maxsize=64)
def check_head(method: str, headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the headers to send, without those that say where the body ends.

    Raises:
        ValueError: the method or a header would end its line early, or is malformed.
    """
    sent = {name: value for name, value in headers if name.lower() not in _FRAMING}
    if "accept-encoding" not in map(str.lower, sent):
        sent["Accept-Encoding"] = "gzip, deflate"
    for name in (method, *sent):
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not a name of a method or a header")
    for name, value in sent.items():
        if _BREAKS.search(value):
            raise ValueError(f"the header {name} has a line break or a null character")
    return sent


@cache
def _connector_class() -> type[TCPConnector]:
    from aiohttp import TCPConnector

    class Connector(TCPConnector):
        """Gives each request a connection on which nothing arrived before it."""

        async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
            """Close each idle connection that received an answer to no request: aiohttp would give it to the next."""
            while True:
                connection = await super().connect(req, traces, timeout)
                if connection.protocol is None or not connection.protocol.should_close:
                    return connection
                connection.close()

        def __del__(self, *_: object) -> None:
            """Leave the connections of a client that nobody closed to the event loop, without a warning."""

    return Connector


def _repair(text: str) -> str:
    """Return the text of a header, which aiohttp reads with surrogates for bytes that are not UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _summarize(text: str) -> str:
    """Return what aiohttp says about an answer, without the bytes of it that follow."""
    return _repair(_QUOTED_BYTES.split(text.strip(), maxsplit=1)[0])
