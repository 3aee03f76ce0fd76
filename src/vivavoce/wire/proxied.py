"""`ProxiedClient`: exchanges through a proxy, with aiohttp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vivavoce.wire.exchange import Broken, Response

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


class ProxiedClient:
    """Up to `concurrency` exchanges at a time in one event loop; answers have up to `size` bytes."""

    def __init__(self, concurrency: int, size: int) -> None:
        self._concurrency = concurrency
        self._size = size
        self._session: ClientSession | None = None

    async def exchange(
        self, proxy: str, method: str, url: str, data: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        """Send a request through a proxy and return the answer.

        Raises:
            Broken: there is no whole answer.
        """
        import aiohttp

        session = self._session = self._session or self._opened()
        try:
            async with session.request(
                method, url, data=data, headers=headers, proxy=proxy, allow_redirects=False
            ) as response:
                return await self._read(response)
        except aiohttp.ClientSSLError as error:
            raise Broken(str(error), "tls") from error
        except aiohttp.ClientConnectorError as error:
            raise Broken(str(error.os_error), "connect") from error
        except aiohttp.ClientResponseError as error:
            raise Broken(error.message, "format") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(str(error) or type(error).__name__, "answer") from error

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def drop(self) -> None:
        """Let the connections of a loop that ended go."""
        if self._session is not None:
            self._session.detach()

    def _opened(self) -> ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),  # a shared jar would join conversations that must stay apart
            headers={"User-Agent": "vivavoce"},
        )

    async def _read(self, response: ClientResponse) -> Response:
        headers = {name.lower(): response.headers.getall(name) for name in response.headers}
        read = Response(response.status, response.reason or "", headers)
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._size:
                response.close()
                read.cut = True
                break
        read.body = bytes(body)
        return read
