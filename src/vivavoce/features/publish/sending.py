"""Requests to other platforms: how they are made, sent, and tried again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from vivavoce.errors import Fault, UsageError
from vivavoce.files.paths import whole_file
from vivavoce.pacing.limits import retrying
from vivavoce.report.text import count, strict_json
from vivavoce.wire.http import Client, Limits


class Kind(NamedTuple):
    """One address of a tool that takes bodies: the name of the `file` of such bodies, and what one item is called."""

    file: str
    path: str
    item: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A body to post, which holds this many items; `older` is what a server takes instead that refuses it."""

    kind: Kind
    body: Any
    items: int = 1
    older: Request | None = None


def write_requests(requests: Iterable[Request], kinds: Sequence[Kind], directory: Path) -> Counter[str]:
    """Write the bodies into a folder, a file for each address and a line for each body; return the items by name.

    Requests come sorted by kind. A file of a kind that has no requests is removed.

    Raises:
        UsageError: the folder cannot be written.
    """
    item_counts: Counter[str] = Counter()
    names: set[str] = set()
    for kind, group in groupby(requests, key=lambda request: request.kind):
        names.add(kind.file)
        with whole_file(directory / kind.file) as path, path.open("w", encoding="utf-8", newline="") as file:
            for request in group:
                file.write(strict_json(request.body) + "\n")
                item_counts[kind.item] += request.items
    try:
        for kind in kinds:
            if kind.file not in names:
                (directory / kind.file).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written: {error.strerror or error}") from error
    return item_counts


def count_items(items: Mapping[str, int]) -> str:
    """Return how many items there are, in words."""
    return ", ".join(count(number, item) for item, number in items.items()) or "nothing"


BATCH_SIZE = 8
"""Requests on their way at a time."""
Ask = Callable[[str, Any], Awaitable[Any]]
"""Gets what a tool has at a path, or posts a body there where one is given, and returns the answer as JSON."""
OLDER_SERVER = (400, 404, 405, 422)
"""Statuses of a server that does not know an address, or what is posted there."""
_MAX_REASONS = 3


async def as_it_is(request: Request, ask: Ask) -> Request:
    """Return a request to post without asking the tool what it has."""
    del ask
    return request


@dataclass(frozen=True, slots=True)
class Address:
    """Where a tool is and who asks there.

    Attributes:
        tool: its name.
        url: the address without a slash at the end.
        headers: what goes with every request.
        secrets: what no message may show.
        has: whether a refusal of a request says that the tool has it already.
        refused: returns from an answer why items of a request were refused.
        ready: what to post of a request when its turn comes, None where the tool has it already.
    """

    tool: str
    url: str
    headers: Mapping[str, str]
    secrets: Sequence[str]
    has: Callable[[Request, Fault], bool]
    refused: Callable[[Any], list[str]]
    ready: Callable[[Request, Ask], Awaitable[Request | None]] = as_it_is


@dataclass(slots=True)
class Sent:
    """What was sent: items by name, how many of them the tool had already, and why it refused some."""

    items: Counter[str] = field(default_factory=Counter[str])
    known: Counter[str] = field(default_factory=Counter[str])
    refused: list[str] = field(default_factory=list[str])


async def send(requests: Iterable[Request], address: Address) -> Sent:
    """Post requests in their order; those of one kind in no order.

    Raises:
        UsageError: the tool cannot be reached or refused something; what it took stays there, and the same may be sent
            again.
    """
    sender = _Sender(address)
    try:
        for _, group in groupby(requests, key=lambda request: request.kind):
            while some := list(islice(group, BATCH_SIZE)):
                await _all(sender.post, some)
    except Fault as fault:
        evidence = f": {fault.evidence}" if fault.evidence else ""
        again = "what was already sent stays there; sending it again creates no duplicates"
        raise UsageError(f"{address.tool}: {fault}{evidence}", again) from fault
    finally:
        await sender.close()
    if sender.sent.refused:
        reasons = list(dict.fromkeys(sender.sent.refused))
        first_reasons = "; ".join(reasons[:_MAX_REASONS]) + (
            f"; and {len(reasons) - _MAX_REASONS} more" if len(reasons) > _MAX_REASONS else ""
        )
        raise UsageError(f"{address.tool} refused {count(len(sender.sent.refused), 'item')}: {first_reasons}")
    return sender.sent


async def _all(post: Callable[[Request], Any], requests: Iterable[Request]) -> None:
    """Post requests at the same time; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(post(request)) for request in requests]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Sender:
    def __init__(self, address: Address) -> None:
        self.sent = Sent()
        self._address = address
        self._client = Client(Limits(concurrency=BATCH_SIZE, timeout=60.0), address.secrets, Fault)
        self._older: set[Kind] = set()

    async def post(self, request: Request) -> None:
        """Post a request, or what an older server takes in its place."""
        ready = await self._address.ready(request, self._ask)
        if ready is None:
            self.sent.known[request.kind.item] += request.items
            return
        if ready.older is not None and ready.kind in self._older:
            ready = ready.older
        try:
            answer = await self._ask(ready.kind.path, ready.body, ready.kind.headers)
        except Fault as fault:
            if self._address.has(ready, fault):
                self.sent.known[ready.kind.item] += ready.items
                return
            if ready.older is None or fault.status not in OLDER_SERVER:
                raise
            self._older.add(ready.kind)
            answer = await self._ask(ready.older.kind.path, ready.older.body, ready.older.kind.headers)
        self.sent.items[ready.kind.item] += ready.items
        self.sent.refused += self._address.refused(answer)

    async def _ask(self, path: str, body: Any, headers: Sequence[tuple[str, str]] = ()) -> Any:
        headers_to_send = {**self._address.headers, **dict(headers)}
        url, method, data = f"{self._address.url}{path}", "GET", None
        if body is not None:
            method, data = "POST", strict_json(body).encode()
            headers_to_send["Content-Type"] = "application/json"
        answer = await retrying(partial(self._client.request, method, url, data, headers_to_send, repeatable=True))
        return answer.json() if answer.body.strip() else None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def describe_sent(sent: Sent) -> Iterator[str]:
    """Yield what was sent, in words."""
    for item, number in sent.items.items():
        yield count(number, item)
    for item, number in sent.known.items():
        yield f"{count(number, item)} already {'exists' if number == 1 else 'exist'}"
