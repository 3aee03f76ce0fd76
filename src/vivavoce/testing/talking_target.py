"""`TalkingTarget`: a target that a test can talk to itself."""

from __future__ import annotations

import uuid

from vivavoce.errors import TargetFault
from vivavoce.messages import ConversationHistory, HumanMessage
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.targets.dialogue import Dialogue, open_channel
from vivavoce.targets.target import Opening, Session, Target

TIMEOUT = 300.0
"""Seconds for one reply."""
RETRIES = 2


class TalkingTarget:
    """A target with `talk`; a tester takes it as it takes any target."""

    def __init__(self, target: Target) -> None:
        self.name = target.name
        self.stateless = target.stateless
        self._target = target

    async def open(self, opening: Opening) -> Session:
        """Begin a conversation."""
        return await self._target.open(opening)

    async def close(self) -> None:
        """Close the connections."""
        await self._target.close()

    def talk(self, *messages: str) -> ConversationHistory:
        """Say the messages one after the other, each after the reply to the one before; return the conversation.

        Raises:
            TargetFault: the target failed.
        """
        __tracebackhide__ = True
        try:
            return wait_for(self.atalk(*messages))
        except TargetFault as fault:
            raise fault.with_traceback(None) from None  # the test is in the traceback, and not our own frames

    async def atalk(self, *messages: str) -> ConversationHistory:
        """Async version of `talk`."""
        channel = open_channel(self._target, limit=1, budget=Budget(), timeout=TIMEOUT, retries=RETRIES)
        opening = Opening(uuid.uuid4().hex, "talk")
        dialogue = Dialogue(channel, lambda: opening)
        try:
            await dialogue.open()
            history = list(dialogue.opening)
            for text in messages:
                turn = await dialogue.say(HumanMessage(content=text))
                if turn.failure is not None:
                    raise TargetFault(turn.failure.message, kind=turn.failure.kind, evidence=turn.failure.evidence)
                history += turn.messages
        finally:
            await dialogue.close()
            await self._target.close()
        return ConversationHistory(messages=history, conversation_id=opening.conversation_id)
