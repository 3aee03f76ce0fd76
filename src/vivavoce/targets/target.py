"""The protocol of a system under test: open a session, send messages, close it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vivavoce.messages import AnyMessage
from vivavoce.records.usage import Usage


@dataclass(frozen=True, slots=True)
class Reply:
    """What a target did after one user message: its assistant and tool messages in order, and what they used."""

    messages: list[AnyMessage]
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a target may know of the conversation that begins; `conversation_id` is new for every attempt."""

    conversation_id: str
    sample_id: str
    agent_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra_vars: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Session(Protocol):
    """One conversation with a target, apart from every other."""

    @property
    def id(self) -> str | None:
        """What the target calls this conversation, where it says."""
        ...

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """What stands before the first user message, where the target says; it is sent by the target itself."""
        ...

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send the last message and return what the target did; the ones before it are the conversation so far.

        Raises:
            TargetFault: the target failed; `retryable` only where asking again cannot repeat a side effect.
        """
        ...

    async def state(self) -> dict[str, Any] | None:
        """Return what the target remembers (memory blocks by label), None where it cannot tell."""
        ...

    async def close(self) -> None:
        """End the conversation; called once, whatever happened before."""
        ...


class Target(Protocol):
    """A system under test; `name` tells its answers apart from those of other targets in a run.

    `stateless` targets get the whole conversation with each call, so a call may be repeated and a conversation forked.
    """

    name: str
    stateless: bool

    async def open(self, opening: Opening) -> Session:
        """Begin a conversation."""
        ...

    async def close(self) -> None:
        """Release what all sessions shared."""
        ...
