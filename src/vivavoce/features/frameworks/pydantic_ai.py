"""Pydantic AI: an `Agent`, which gets the messages of the conversation so far as its `message_history`."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, field
from inspect import isroutine
from typing import Any

from pydantic_core import to_jsonable_python

from vivavoce.conversations.objects import messages_of
from vivavoce.messages import AnyMessage
from vivavoce.targets.framework import (
    Beginning,
    Framework,
    has,
    of_target,
    text_of,
    usage_in,
    value_in,
    waits_for,
    with_answer,
)
from vivavoce.targets.target import FirstToken, Reply

_TITLE = "Pydantic AI"
_PIECES = ("part_start", "part_delta")


def _adapts(thing: object) -> bool:
    return has(thing, "run_sync", "iter", "override", "toolsets")


async def _open(agent: Any, beginning: Beginning) -> _Conversation:
    return _Conversation(agent, beginning)


@dataclass(slots=True)
class _Conversation:
    agent: Any
    beginning: Beginning
    history: Any = field(default_factory=list[Any])

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        options = {"message_history": self.history, "conversation_id": self.id, **self.beginning.options}
        if self.beginning.stream:
            options["event_stream_handler"] = _listening(token)
        result = await self.agent.run(text_of(messages, _TITLE), **options)
        if hasattr(result.output, "approvals") and hasattr(result.output, "calls"):
            waiting = [call.tool_name for call in (*result.output.approvals, *result.output.calls)]
            raise waits_for(self.beginning.name, f"the result or the approval of {', '.join(waiting)}")
        self.history = result.all_messages()
        new = to_jsonable_python(result.new_messages(), bytes_mode="base64", exclude_none=True)
        told = of_target(messages_of(new, "pydantic-ai"))
        used = result.usage() if isroutine(result.usage) else result.usage  # a method in its version 1
        return Reply(
            with_answer(told, result.output),
            usage_in(
                used,
                input_tokens="input_tokens",
                output_tokens="output_tokens",
                cached_input_tokens="cache_read_tokens",
                reasoning_tokens="details.reasoning_tokens",
                calls="requests",
            ),
        )

    async def close(self) -> None:
        """Nothing is held."""


def _listening(token: FirstToken) -> Any:
    async def listen(context: Any, events: AsyncIterable[Any]) -> None:
        del context
        async for event in events:
            if getattr(event, "event_kind", None) in _PIECES:
                token.note_piece(_words(event))

    return listen


def _words(event: Any) -> Any:
    """Return the words of a piece, None where it is of a call or of a thought."""
    if value_in(event, "part.part_kind") == "text":
        return value_in(event, "part.content")
    return value_in(event, "delta.content_delta") if value_in(event, "delta.part_delta_kind") == "text" else None


FRAMEWORK = Framework(_TITLE, "pydantic-ai-slim", "2.68", _adapts, _open, streams=True)
