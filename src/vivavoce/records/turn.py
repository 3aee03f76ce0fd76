"""One exchange of a conversation: what was said to the target, and everything it did."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from vivavoce.conversation import mark_of
from vivavoce.messages import HumanMessage, StoredMessages
from vivavoce.records.failure import Failure
from vivavoce.records.usage import Usage
from vivavoce.session_mark import SessionMark


class Turn(BaseModel):
    """One exchange: the user's message and everything up to the next one.

    `started_at` is seconds since the epoch and `seconds` how long the target took, both None when unknown.
    """

    model_config = ConfigDict(frozen=True)

    index: int
    messages: StoredMessages
    started_at: float | None = None
    seconds: float | None = None
    usage: Usage | None = None
    failure: Failure | None = None

    @property
    def user_message(self) -> HumanMessage:
        """What the user said."""
        return next(message for message in self.messages if isinstance(message, HumanMessage))

    @property
    def mark(self) -> SessionMark | None:
        """Its session, None where the conversation is a single one."""
        return mark_of(self.messages)
