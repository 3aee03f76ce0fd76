"""AutoGen: an agent or a team of AgentChat.

Such an object remembers what was said to it, so its state is saved after each turn and loaded before the next one of
the same conversation; turns of conversations with one object wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vivavoce.conversations.objects import messages_of, plain
from vivavoce.errors import TargetFault
from vivavoce.messages import AnyMessage
from vivavoce.pacing.loops import PerLoop
from vivavoce.records.score import Usage, total
from vivavoce.targets.framework import Beginning, Framework, has, of_target, text_of, usage_in
from vivavoce.targets.target import FirstToken, Reply

_TITLE = "AutoGen"
_PIECES = "ModelClientStreamingChunkEvent"


@dataclass(slots=True)
class _Asked:
    """An agent or a team, with its state before the first conversation, and the lock of whoever runs it."""

    thing: Any
    lock: PerLoop[asyncio.Lock] = field(default_factory=lambda: PerLoop(asyncio.Lock))
    first: Any = None


def _adapts(thing: object) -> bool:
    return has(thing, "run_stream", "save_state", "load_state")


async def _open(asked: _Asked, beginning: Beginning) -> _Conversation:
    async with asked.lock.get():
        if asked.first is None:
            asked.first = await asked.thing.save_state()
    return _Conversation(asked, beginning, asked.first)


@dataclass(slots=True)
class _Conversation:
    asked: _Asked
    beginning: Beginning
    state: Any

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        text, result = text_of(messages, _TITLE), None
        async with self.asked.lock.get():
            await self.asked.thing.load_state(self.state)
            async for one in self.asked.thing.run_stream(task=text, **self.beginning.options):
                if getattr(one, "type", None) == _PIECES:
                    token.note_piece(getattr(one, "content", None))
                result = one
            self.state = await self.asked.thing.save_state()
        if result is None or not hasattr(result, "messages"):
            raise TargetFault(f"{self.beginning.name} ended in the middle of its reply", kind="cut")
        return Reply(of_target(messages_of(plain(list(result.messages)), "autogen")), _usage(result.messages))

    async def close(self) -> None:
        """Nothing is held."""


def _usage(messages: Sequence[Any]) -> Usage | None:
    return total(
        usage_in(
            getattr(message, "models_usage", None), input_tokens="prompt_tokens", output_tokens="completion_tokens"
        )
        for message in messages
    )


FRAMEWORK = Framework(_TITLE, "autogen-agentchat", "0.7", _adapts, _open, prepare=lambda thing, name: _Asked(thing))
