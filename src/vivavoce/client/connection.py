"""A server's answer that it did not do what was asked, as the error that it stands for."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from vivavoce.errors import Fault, NotFound, UsageError
from vivavoce.pacing.loops import LoopThread
from vivavoce.report.text import strict_json
from vivavoce.wire.http import Answer, Limits, checked_url
from vivavoce.wire.http import Client as Connections


def refusal_of(status: int | None, body: str | None) -> UsageError | None:
    """Return the server's error about a request, None where the error is not in the request."""
    if status is None or not 400 <= status < 500:
        return None
    try:
        parsed: Any = json.loads(body or "")
    except ValueError:
        parsed = None
    fields = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    detail = fields.get("detail")
    if fields.get("code") == "not_found" and "what" in fields:
        return NotFound(str(fields["what"]), str(fields.get("name")), message=str(detail))
    return UsageError(str(detail or (body or "").strip() or f"the server refused the request ({status})"))


LOCAL = "http://127.0.0.1:8484"
"""The default address of `viva serve`."""

MAX_BYTES = 200_000_000
"""Bytes of an answer at most."""

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Connection:
    """A server; `token` is the access token it requires, `timeout` the seconds that an answer may take."""

    def __init__(self, url: str = LOCAL, token: str | None = None, *, timeout: float = 300.0) -> None:
        self._url = checked_url(url, "the address of the server").rstrip("/") + "/api/v1"
        self._headers = {"accept": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._connections = Connections(Limits(timeout=timeout, size=MAX_BYTES), [token or ""], Fault)

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
        values = {name: value for name, value in params.items() if value is not None}
        query = urlencode(values, doseq=True, errors="replace")
        return parse_answer(kind, (await self._send("GET", f"{path}?{query}")).body)

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


def parse_answer(kind: type[M], body: bytes) -> M:
    """Return an answer as what it should be.

    Raises:
        Fault: it is something else.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise Fault(f"the server did not answer with a {kind.__name__}: {error}", kind="format") from error


def part(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="", errors="replace")


def each(loop: LoopThread, items: AsyncGenerator[T]) -> Iterator[T]:
    """Yield the items of an async source; stopping early closes the source."""

    async def following() -> tuple[T, ...]:
        async for item in items:
            return (item,)
        return ()

    async def close() -> None:
        await items.aclose()

    try:
        while items_read := loop.run(following()):
            yield from items_read
    finally:
        loop.run(close())
