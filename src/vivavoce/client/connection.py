"""The connection of a client with a server: what a request sends, and what an answer is read as."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from vivavoce.client.refusal import refusal_of
from vivavoce.errors import Fault
from vivavoce.report.strict_json import strict_json
from vivavoce.wire.http import Answer, Limits, checked_url
from vivavoce.wire.http import Client as Connections

LOCAL = "http://127.0.0.1:8484"
"""The default address of `viva serve`."""

LARGEST = 200_000_000
"""Bytes of an answer at most."""

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Connection:
    """A server; `token` is the access token it requires, `timeout` the seconds that an answer may take."""

    def __init__(self, url: str = LOCAL, token: str | None = None, *, timeout: float = 300.0) -> None:
        self._url = checked_url(url, "the address of the server").rstrip("/") + "/api/v1"
        self._headers = {"accept": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._connections = Connections(Limits(timeout=timeout, size=LARGEST), [token or ""], Fault)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    async def _pages(
        self, path: str, params: Mapping[str, str | None], kind: type[M], items: Callable[[M], Sequence[T]]
    ) -> AsyncGenerator[T]:
        after: str | None = None
        while True:
            page = await self._get(path, {**params, "after": after, "limit": "200"}, kind)
            for item in items(page):
                yield item
            after = cast("str | None", page.model_dump(include={"next"})["next"])
            if after is None:
                return

    async def _get(self, path: str, params: Mapping[str, str | Sequence[str] | None], kind: type[M]) -> M:
        named = {name: value for name, value in params.items() if value is not None}
        query = urlencode(named, doseq=True, errors="replace")
        return checked(kind, (await self._send("GET", f"{path}?{query}")).body)

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        data = None if body is None else strict_json(body).encode()
        all_headers = self._headers | {"content-type": "application/json"} | dict(headers or {})
        try:
            return await self._connections.request(
                method, self._url + path, data, all_headers, repeatable=method == "GET"
            )
        except Fault as error:
            raise refusal_of(error.status, error.evidence) or error from error.__cause__


def checked(kind: type[M], body: bytes) -> M:
    """Return an answer as what it should be.

    Raises:
        Fault: it is something else.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise Fault(f"the server answered something else than a {kind.__name__}: {error}", kind="format") from error


def part(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="", errors="replace")
