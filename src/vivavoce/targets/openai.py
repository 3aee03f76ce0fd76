"""`OpenAITarget`: a model or bot behind an OpenAI-compatible chat completions endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.messages import AnyMessage, SystemMessage
from vivavoce.targets.target import Opening, Reply
from vivavoce.wire.chat import ChatEndpoint, checked_settings, wire_messages
from vivavoce.wire.http import Limits

_ENDED = (None, "stop", "tool_calls", "function_call")


class OpenAITarget:
    """A chat completions endpoint, which gets the whole conversation with each call.

    `settings` are sent as they are (`temperature`, `max_tokens`, …), `tools` are offered and not executed: a reply that
    calls them is recorded as it is. What a provider adds to its messages is sent back to it in the next turn.

    Raises:
        UsageError: `base_url` is not a web address, or `settings` hold a part of the request that is made here.
    """

    stateless = True

    def __init__(
        self,
        name: str,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        system_prompt: str | None = None,
        settings: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self.endpoint = ChatEndpoint(base_url, api_key, limits)
        self.opening = (SystemMessage(content=system_prompt),) if system_prompt else ()
        self.body = {"model": model, **checked_settings(settings or {}, name)}
        if tools:
            self.body["tools"] = [dict(tool) for tool in tools]

    async def open(self, opening: Opening) -> OpenAISession:
        """Begin a conversation."""
        return OpenAISession(self)

    async def close(self) -> None:
        """Close the connections."""
        await self.endpoint.close()


@dataclass(frozen=True, slots=True)
class OpenAISession:
    """One conversation; the endpoint remembers nothing of it."""

    target: OpenAITarget

    @property
    def id(self) -> str | None:
        """None: the endpoint has no name for a conversation."""
        return None

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """The system prompt, where there is one."""
        return self.target.opening

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send the conversation so far and return the model's message.

        A message that did not end by itself says so: `metadata["finish_reason"]` is `length` or `content_filter`.

        Raises:
            TargetFault: the endpoint failed.
        """
        target = self.target
        completion = await target.endpoint.complete(
            {**target.body, "messages": wire_messages([*target.opening, *messages])}
        )
        message = completion.message
        if completion.finish_reason not in _ENDED:
            notes = {**(message.metadata or {}), "finish_reason": completion.finish_reason}
            message = message.model_copy(update={"metadata": notes})
        return Reply([message], completion.usage)

    async def state(self) -> dict[str, Any] | None:
        """Return None: there is no state."""
        return None

    async def close(self) -> None:
        """Do nothing."""
