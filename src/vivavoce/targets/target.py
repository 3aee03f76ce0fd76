"""The protocol of a system under test: open a session, send messages, close it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from vivavoce.messages import AnyMessage
from vivavoce.records.score import Usage
from vivavoce.targets.user import User


@dataclass(frozen=True, slots=True)
class Reply:
    """The reaction of a target to one user message: its assistant and tool messages in order, and their usage."""

    messages: list[AnyMessage]
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """The data that a target gets at the beginning of a conversation; `conversation_id` is new for every attempt.

    `state` is what the row says about the world that tools change, None where it says nothing; `tool_results` are its
    answers to calls of tools, and `approvals` what its user says to a tool that asks first. `said` are the texts that
    the row has the user say. `trial` counts from 0. `user` is who speaks where users come back in several sessions,
    else None.
    """

    conversation_id: str
    sample_id: str
    agent_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra_vars: Mapping[str, Any] = field(default_factory=dict[str, Any])
    state: Mapping[str, Any] | None = None
    tool_results: Mapping[str, Any] = field(default_factory=dict[str, Any])
    approvals: Any = None
    said: Sequence[str] = ()
    trial: int = 0
    user: User | None = None

    @property
    def variables(self) -> dict[str, Any]:
        """The values that the templates of a request have of it."""
        row = {"id": self.sample_id, "extra_vars": dict(self.extra_vars), "agent_args": dict(self.agent_args)}
        return {"conversation_id": self.conversation_id, "user": self.user_id, "sample": row}

    @property
    def user_id(self) -> str:
        """Who speaks: somebody who does not come back has the id of this conversation."""
        return self.conversation_id if self.user is None else self.user.id


class Session(Protocol):
    """One conversation with a target, apart from every other."""

    @property
    def id(self) -> str | None:
        """The target's id of this conversation, where it gives one."""
        ...

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """The messages before the first user message, where the target gives them; it sends them itself."""
        ...

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send the last message and return what the target did; the ones before it are the conversation so far.

        Raises:
            TargetFault: the target failed; `retryable` only where asking again cannot repeat a side effect.
        """
        ...

    async def state(self) -> dict[str, Any] | None:
        """Return the state of the target (memory blocks by label), None where it has none to show."""
        ...

    async def close(self) -> None:
        """End the conversation; called once, whatever happened before."""
        ...


class Target(Protocol):
    """A system under test; `name` tells its answers apart from those of other targets in a run.

    `stateless` targets get the whole conversation with each call, so a call may be repeated and a conversation forked.
    One that also has `knows_users = True` reads the `user` of an opening, and so can remember who comes back.
    """

    name: str
    stateless: bool

    async def open(self, opening: Opening) -> Session:
        """Begin a conversation."""
        ...

    async def close(self) -> None:
        """Release what all sessions shared."""
        ...


@runtime_checkable
class Returning(Protocol):
    """A session that has something to do before a conversation goes on that was held elsewhere."""

    async def go_on(self, messages: Sequence[AnyMessage]) -> None:
        """Make the world of the conversation what these messages left of it.

        Raises:
            SuiteFault: that cannot be told (kind `no_state`).
        """
        ...


def gets_conversation(target: Target) -> bool:
    """Return whether a target gets the whole conversation with each message, and keeps nothing of it itself."""
    return target.stateless or getattr(target, "gets_conversation", False) is True


def lacks_history(name: str) -> str:
    """Return why a target that keeps the conversation itself cannot go on from the history of a row."""
    return (
        f"{name} keeps the conversation itself and cannot be given a 'history'; use a target that gets the whole "
        "conversation with each message, or say the history again as 'input'"
    )
