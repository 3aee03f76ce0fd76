"""The dialect of chat completions: what is asked, and what an answer holds.

Source of the format: OpenAI's reference of `POST /chat/completions`, as vLLM, Ollama, llama.cpp and others speak it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic_core import PydanticSerializationError, to_json

from vivavoce.errors import Fault, TargetFault, UsageError
from vivavoce.messages import AIMessage, Message, read_message
from vivavoce.records.usage import Usage
from vivavoce.wire.http import Answer, Client, Limits, checked_url

_SIMPLE = {"role", "content"}
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
        self.url = base_url.rstrip("/") + "/chat/completions"
        key = (api_key or "").strip()
        self._client = Client(limits, [key], fault)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    async def complete(self, body: Mapping[str, Any]) -> Completion:
        """Send the body of a request and return the first choice.

        Raises:
            Fault: no answer, or one without `choices[0].message`.
        """
        return read_completion(
            await self._client.request("POST", self.url, json_bytes(body), self._headers, repeatable=True)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def json_bytes(value: object) -> bytes:
    """Return JSON text as bytes; what JSON does not know is refused, NaN and half a surrogate pair are not.

    Raises:
        TypeError: something in it is no JSON.
    """
    try:
        return to_json(value, inf_nan_mode="constants")
    except PydanticSerializationError:
        return json.dumps(value).encode()


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as an endpoint accepts them."""
    return [
        {"role": message.role, "content": message.content}
        if message.model_fields_set == _SIMPLE and isinstance(message.content, str)
        else message.to_wire()
        for message in messages
    ]


def checked_settings(settings: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return settings such as `temperature`.

    Raises:
        UsageError: one of them is not a setting but a part of the request that is made here.
    """
    for key in _OURS:
        if key in settings:
            raise UsageError(f"{what}: '{key}' is not a setting; it is sent by vivavoce itself")
    return dict(settings)


def read_completion(answer: Answer) -> Completion:
    """Read an answer of a chat completions endpoint.

    Keys of the message that are null are dropped: they say nothing, and some endpoints refuse to get them back.

    Raises:
        Fault: of kind `format`.
    """
    payload = answer.json()
    try:
        choice = payload["choices"][0]
        said = {key: value for key, value in choice["message"].items() if value is not None}
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise answer.malformed("has no choices[0].message") from error
    try:
        message = cast("AIMessage", read_message({"content": None, **said, "role": "assistant"}))
        usage = read_usage(payload.get("usage"))
    except (ValueError, AttributeError) as error:
        raise answer.malformed(f"has a malformed message or usage: {error}") from error
    return Completion(message, usage, choice.get("finish_reason"), payload)


def read_usage(reported: Mapping[str, Any] | None) -> Usage | None:
    """Read the `usage` of an answer, None when the endpoint does not report it."""
    if not reported:
        return None
    prompt: Mapping[str, Any] = reported.get("prompt_tokens_details") or {}
    completion: Mapping[str, Any] = reported.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=reported.get("prompt_tokens") or 0,
        output_tokens=reported.get("completion_tokens") or 0,
        cached_input_tokens=prompt.get("cached_tokens") or 0,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
        calls=1,
    )
