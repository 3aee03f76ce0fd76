"""The dialect of chat completions: what is asked, and what an answer holds.

Source of the format: OpenAI's reference of `POST /chat/completions`, as vLLM, Ollama, llama.cpp and others speak it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import PydanticSerializationError, to_json

from vivavoce.errors import Fault, TargetFault, UsageError
from vivavoce.messages import AIMessage, Message, plain_texts, read_message
from vivavoce.records.score import Usage, charge, reported_usage
from vivavoce.wire.http import NO_HEADERS, Answer, Client, Limits, checked_url

_OURS = ("model", "messages", "stream", "n", "tools", "response_format")


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a chat model; `finish_reason` is `length` when it was cut off."""

    message: AIMessage
    usage: Usage | None
    finish_reason: str | None
    payload: dict[str, Any]


class ChatEndpoint:
    """One address that completes chats, and the key to it."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        limits: Limits | None = None,
        fault: type[Fault] = TargetFault,
    ) -> None:
        if urlsplit(checked_url(base_url, "base_url")).query:
            raise UsageError("base_url: the address of an endpoint has no query; leave out the '?' and what follows it")
        self._base_url = base_url.rstrip("/")
        self.url = f"{self._base_url}/chat/completions"
        key = (api_key or "").strip()
        self._client = Client(limits, [key], fault)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    async def complete(self, body: Mapping[str, Any], headers: Mapping[str, str] = NO_HEADERS) -> Completion:
        """Send the body of a request, with some headers besides, and return the first choice.

        Raises:
            Fault: no answer, or one without `choices[0].message`.
        """
        return read_completion(
            await self._client.request(
                "POST", self.url, body_bytes(body), {**headers, **self._headers}, repeatable=True
            )
        )

    async def send(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        repeatable: bool = False,
    ) -> Answer:
        """Send a request to another path below the same address, with the same key.

        Raises:
            Fault: there is no answer, or its status is not a success.
        """
        url = f"{self._base_url}{path}"
        return await self._client.request(method, url, data, {**self._headers, **headers}, repeatable=repeatable)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def json_bytes(value: object) -> bytes:
    """Return JSON text as bytes; what JSON does not know is refused, NaN and half a surrogate pair are not.

    Raises:
        TypeError: something in it is not JSON.
    """
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:
        return json.dumps(value).encode()


class WireMessages(list[dict[str, Any]]):
    """Messages as an endpoint accepts them; nobody changes the list, whose JSON text is made once."""

    @cached_property
    def json(self) -> bytes:
        """The messages as JSON text; what JSON does not know is its `str`."""
        try:
            return to_json(list(self), inf_nan_mode="constants", fallback=str)
        except PydanticSerializationError:  # text that is not UTF-8: json escapes it
            return json.dumps(self, default=str).encode()


def wire_messages(messages: Sequence[Message]) -> WireMessages:
    """Return messages as an endpoint accepts them."""
    wire = WireMessages()
    for message, text in zip(messages, plain_texts(messages), strict=True):
        wire.append(message.to_wire() if text is None else {"role": message.role, "content": text})
    return wire


class WireJson(dict[str, Any]):
    """A part of many requests; nobody changes it, and its JSON text is made once."""

    @cached_property
    def json(self) -> bytes:
        """The part as JSON text.

        Raises:
            TypeError: something in it is not JSON.
        """
        return json_bytes(dict(self))


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """Return the body of a request as JSON text; of the parts that have theirs already, it is taken.

    Raises:
        TypeError: something in it is not JSON.
    """
    parts = [
        _key(name) + (value.json if isinstance(value, WireMessages | WireJson) else json_bytes(value))
        for name, value in body.items()
    ]
    return b"{" + b",".join(parts) + b"}"


@lru_cache(256)
def _key(name: str) -> bytes:
    return json_bytes(name) + b":"


def checked_settings(settings: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return settings such as `temperature`.

    Raises:
        UsageError: one of them is not a setting but a part of the request that is made here.
    """
    for key in _OURS:
        if key in settings:
            raise UsageError(f"{what}: '{key}' cannot be set; vivavoce sends it itself")
    return dict(settings)


def read_completion(answer: Answer) -> Completion:
    """Read an answer of a chat completions endpoint.

    Keys of the message that are null are dropped: they say nothing, and some endpoints refuse to get them back.

    Raises:
        Fault: of kind `format`, with what the answer used.
    """
    payload: Any = answer.json()
    usage = read_usage(_detail(payload, "usage"))
    try:
        choice = payload["choices"][0]
        fields = {key: value for key, value in choice["message"].items() if value is not None}
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _malformed_fault(answer, "has no choices[0].message", usage) from error
    try:
        message: Any = read_message({"content": None, **fields, "role": "assistant"})
    except (ValueError, AttributeError) as error:
        raise _malformed_fault(answer, f"has a malformed message: {error}", usage) from error
    return Completion(message, usage, choice.get("finish_reason"), payload)


def _malformed_fault(answer: Answer, what: str, usage: Usage | None) -> Fault:
    fault = answer.malformed_fault(what)
    charge(fault, usage)
    return fault


def read_usage(reported: object) -> Usage | None:
    """Read the `usage` of an answer, None when the endpoint does not report it, or not as numbers of tokens."""
    if not isinstance(reported, dict):
        return None
    tokens: dict[str, object] = reported  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
    if (read := tokens.get("prompt_tokens")) is None:
        return None
    of_prompt, of_answer = tokens.get("prompt_tokens_details"), tokens.get("completion_tokens_details")
    cached = _detail(of_prompt, "cached_tokens") if of_prompt else None
    reasoning = _detail(of_answer, "reasoning_tokens") if of_answer else None
    return reported_usage(read, tokens.get("completion_tokens"), cached, reasoning)


def _detail(details: object, name: str) -> object:
    known: Any = details
    return known.get(name) if isinstance(details, dict) else None
