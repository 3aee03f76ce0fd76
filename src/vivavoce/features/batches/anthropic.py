"""`AnthropicBatches`: the Message Batches of Anthropic.

Source of the format: Anthropic's reference of `POST /v1/messages/batches`.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, cast

from vivavoce.errors import ModelFault
from vivavoce.features.batches.service import (
    LIMITS,
    NotJson,
    Prepared,
    Settled,
    State,
    checked_id,
    complaint_of,
    is_answer_of,
    json_reply,
    listed_objects,
    priced,
    read_counts,
    read_object,
    rows_of,
)
from vivavoce.models.model import ModelReply, Request
from vivavoce.models.prices import Price
from vivavoce.records.replies import Batch
from vivavoce.records.score import Usage, charge, reported_usage
from vivavoce.wire.chat import json_bytes
from vivavoce.wire.http import Answer, Client

ADDRESS = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_PATH = "/v1/messages/batches"
_EARLIER = 300.0
"""Seconds by which the clock of the service may be behind ours."""
_NEVER_TAKEN_UP = frozenset(("expired", "canceled"))
_PASSES = frozenset(("api_error", "overloaded_error", "rate_limit_error", "timeout_error"))
"""Types of errors of a request that may be answered when it is asked again."""
_PAGE, _PAGES = 100, 50


class Kept(Protocol):
    """A request that is not sent: its body, and the optional features that it needs."""

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """The features, as the header `anthropic-beta` names them."""
        ...


class Keyed(Protocol):
    """Holds a key."""

    @property
    def api_key(self) -> str | None:
        """The key, None where there is none."""
        ...


class KeepsRequests(Protocol):
    """A model that can say what it would send."""

    name: str

    @property
    def access(self) -> Keyed:
        """The key to it."""
        ...

    async def unsent(self, request: Request) -> Kept:
        """Return what would be sent."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class AnthropicBatches:
    """Asks a model of Anthropic in batches: the requests are a part of the call that makes the batch.

    The service gives a batch no name of ours, so one whose making broke is found by its time and number of requests;
    whether it is ours the names of its questions say when it has ended.
    """

    most_requests = 100_000
    takes_files = False

    def __init__(self, model: KeepsRequests, price: Price | None) -> None:
        self._model = model
        self._price = price
        self._address = (os.environ.get("ANTHROPIC_BASE_URL") or ADDRESS).rstrip("/")
        key = model.access.api_key or ""
        self._headers = {"Content-Type": "application/json", "x-api-key": key, "anthropic-version": _VERSION}
        self._client = Client(LIMITS, [key], ModelFault)
        self._features: set[str] = set()

    async def prepare(self, custom_id: str, request: Request) -> Prepared:
        """Return a question as one request of a batch, without sending it.

        Raises:
            ModelFault: it asks for no JSON, or offers tools (kind `unsupported`).
        """
        if request.schema is None or request.tools:
            message = "only questions that ask for JSON, and offer no tools, can be asked in a batch"
            raise ModelFault(message, kind="unsupported")
        kept = await self._model.unsent(request)
        self._features.update(kept.features)
        line = json_bytes({"custom_id": custom_id, "params": kept.body})
        return Prepared(line, kept.body.get("max_tokens"))

    async def upload(self, lines: Sequence[bytes], name: str) -> str:
        """Do nothing: this service takes no files.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Anthropic takes requests only when a batch is created")

    async def create(self, lines: Sequence[bytes], file: str | None) -> State:
        """Make a batch of requests."""
        del file
        data = b'{"requests":[' + b",".join(lines) + b"]}"
        features = {"anthropic-beta": ",".join(sorted(self._features))} if self._features else {}
        return _state(read_object((await self._send("POST", "", data, features)).json()))

    async def find(self, batch: Batch, known: Collection[str]) -> str | None:
        """Return the id of the oldest batch that may be this one, None where none can be."""
        after, found = "", list[str]()
        for _ in range(_PAGES):
            payload = read_object((await self._send("GET", f"?limit={_PAGE}{after}", repeatable=True)).json())
            listed = listed_objects(payload, "data")
            recent = [one for one in listed if _created(one) >= batch.created_at - _EARLIER]
            ids = [checked_id(one.get("id"), "finding a batch") for one in recent if _total(one) == batch.requests]
            found += [one for one in ids if one not in known]
            if not payload.get("has_more") or len(recent) < len(listed):
                break
            after = f"&after_id={checked_id(listed[-1].get('id'), 'listing batches')}"
        return found[-1] if found else None

    async def look(self, service_id: str) -> State:
        """Return how far a batch is."""
        return _state(read_object((await self._send("GET", f"/{service_id}", repeatable=True)).json()))

    async def cancel(self, service_id: str) -> None:
        """Ask the service to answer no more of a batch; what it has answered stays, and is charged."""
        await self._send("POST", f"/{service_id}/cancel", repeatable=True)

    async def results(self, state: State) -> AsyncIterator[Settled]:
        """Yield what came of each question of a batch that has ended."""
        answer = await self._send("GET", f"/{state.id}/results", repeatable=True)
        for settled in self._settled(answer.text):
            yield settled

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
        await self._model.close()

    async def _send(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeatable: bool = False,
    ) -> Answer:
        url, sent = f"{self._address}{_PATH}{path}", {**self._headers, **(headers or {})}
        return await self._client.request(method, url, data, sent, repeatable=repeatable)

    def _settled(self, text: str) -> Iterator[Settled]:
        for row in rows_of(text):
            name, result = str(row.get("custom_id")), row.get("result")
            match result:
                case {"type": "succeeded", "message": {**message}}:
                    yield self._answered(name, cast("dict[str, Any]", message))
                case {"type": "errored", "error": error}:
                    fault = ModelFault(f"the service answered with an error: {complaint_of(error)}", kind="http")
                    yield Settled(name, fault=fault, then="ask again" if _type_of(error) in _PASSES else "give up")
                case {"type": str(kind)} if kind in _NEVER_TAKEN_UP:
                    yield Settled(name, fault=ModelFault(f"the request {_said(kind)}", kind="http"), then="ask again")
                case _:
                    yield Settled(name, fault=ModelFault("a line of the batch has no result", kind="format"))

    def _answered(self, name: str, message: Mapping[str, Any]) -> Settled:
        usage = priced(_usage(message.get("usage")), self._price)
        try:
            return Settled(name, self._reply(message, usage))
        except ModelFault as fault:
            charge(fault, usage)
            return Settled(name, fault=fault, then="repair" if isinstance(fault, NotJson) else "give up")

    def _reply(self, message: Mapping[str, Any], usage: Usage) -> ModelReply:
        answered = message.get("model")
        if not is_answer_of(answered, self._model.name):
            raise ModelFault(f"answered by the model '{answered}' instead of {self._model.name}", kind="format")
        text, stop = _text(message.get("content")), message.get("stop_reason")
        if stop == "refusal":
            raise ModelFault("the model declined to answer", kind="refusal", evidence=text or None)
        if stop in ("max_tokens", "model_context_window_exceeded"):
            raise ModelFault("the answer was cut off at the token limit", kind="format", evidence=text)
        return json_reply(text, usage)


def _text(content: object) -> str:
    """Return what should be JSON: the arguments of the tool for replies, or else the words."""
    blocks = [cast("dict[str, Any]", one) for one in cast("list[object]", content or []) if isinstance(one, dict)]
    for block in blocks:
        if block.get("type") == "tool_use":
            return json.dumps(block.get("input"))
    return "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")


def _usage(told: object) -> Usage | None:
    if not isinstance(told, dict):
        return None
    tokens = cast("dict[str, Any]", told)
    read, written = tokens.get("cache_read_input_tokens") or 0, tokens.get("cache_creation_input_tokens") or 0
    try:
        return reported_usage(tokens["input_tokens"] + read + written, tokens.get("output_tokens"), read, None)
    except (KeyError, TypeError):
        return None


def _state(payload: Mapping[str, Any]) -> State:
    service_id = checked_id(payload.get("id"), "a batch")
    counts = read_counts(payload)
    broken = sum(counts.get(name, 0) for name in ("errored", "canceled", "expired"))
    stage = "ended" if payload.get("processing_status") == "ended" else "going"
    return State(service_id, stage, counts.get("succeeded", 0) + broken, broken)


def _total(payload: Mapping[str, Any]) -> int:
    return sum(read_counts(payload).values())


def _created(payload: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(payload.get("created_at"))).timestamp()
    except ValueError as error:
        raise ModelFault("the service returned a batch without a creation time", kind="format") from error


def _type_of(error: object) -> str:
    match error:
        case {"error": {"type": str(kind)}} | {"type": str(kind)}:
            return kind
        case _:
            return ""


def _said(kind: str) -> str:
    return "was not answered within a day" if kind == "expired" else "was cancelled"
