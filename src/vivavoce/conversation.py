"""A conversation: ordered messages, and the turns and windows one can see in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from vivavoce.messages import AnyMessage, Message, Messages, SessionMark, read_messages
from vivavoce.plugins import lazy


class ConversationHistory(BaseModel):
    """The ordered messages of one conversation, with an id."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    messages: Messages = Field(validation_alias=AliasChoices("messages", "turns"))
    conversation_id: str | None = None

    @property
    def turns(self) -> list[AnyMessage]:
        """The messages, under the name that older interfaces use; exchanges are in `split_turns`."""
        return self.messages

    def to_dict_list(self, *, include_metadata: bool = False) -> list[dict[str, Any]]:
        """Return the messages as plain dicts, each with a role and a content; one that is null is the empty text.

        Calls of tools stay; `include_metadata` keeps timestamps, metadata and what was retrieved, too.
        """
        dicts = [message.to_dict() if include_metadata else message.to_wire() for message in self.messages]
        return [{**one, "role": one["role"], "content": one.get("content") or ""} for one in dicts]

    @classmethod
    def from_dict_list(cls, turns: Iterable[Mapping[str, Any] | Message]) -> ConversationHistory:
        """Read a conversation from dicts with `role` and `content`."""
        return cls(messages=read_messages(turns))

    def _repr_html_(self) -> str:
        """Return the conversation for a notebook, in which every text is escaped."""
        return cast("str", lazy("vivavoce.report.html.notebook:conversation_html")(self))

    def pretty_repr(self) -> str:
        """Return the conversation as readable lines."""
        return pretty(self.messages)


def pretty(messages: Iterable[Message]) -> str:
    """Return messages as readable lines, one speaker after the other."""
    return "\n".join(message.pretty_repr() for message in messages)


def split_turns(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[list[AnyMessage]]]:
    """Split messages into what stands before the first user message, and the turns.

    A turn is a user message and everything up to the next user message; tool calls are steps inside it. The first turn
    of a later session also holds what was said there before its user said something.
    """
    opening: list[AnyMessage] = []
    turns: list[list[AnyMessage]] = []
    current: list[AnyMessage] = opening
    mark: SessionMark | None = None
    greeted = False
    for message in messages:
        found = None if message.session is None else message.mark
        later = found is not None and mark is not None and found != mark
        mark = found or mark
        is_user = message.role == "user"
        if later or (is_user and not greeted):
            current = []
            turns.append(current)
        greeted = not is_user and (later or greeted)
        current.append(message)
    return opening, turns


def mark_of(messages: Iterable[Message]) -> SessionMark | None:
    """Return the session of the messages of a turn, None where they say none."""
    for message in messages:
        if message.session is not None and (mark := message.mark):
            return mark
    return None


def windows(turns: Sequence[Sequence[AnyMessage]], size: int) -> Iterator[list[AnyMessage]]:
    """Yield, for each turn, the messages of that turn and of up to `size - 1` turns before it."""
    if size < 1:
        raise ValueError(f"a window holds at least 1 turn, got {size}")
    for end in range(1, len(turns) + 1):
        yield [message for turn in turns[max(0, end - size) : end] for message in turn]
