"""The tools that a target offers to its model: their definitions, and who answers the calls."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue

from vivavoce.errors import SuiteFault
from vivavoce.messages import AnyMessage, ToolCall, ToolMessage
from vivavoce.records.trajectory import Source
from vivavoce.targets.target import Opening


class MadeCall(NamedTuple):
    """A call of a tool, who answered it, and whether that changed the state, or would have; None for unknown."""

    name: str
    arguments: Mapping[str, JsonValue]
    source: Source
    changed_state: bool | None


@dataclass(slots=True)
class World:
    """What the tools of one conversation find and change: the `state` of a row, and how often answers were given.

    `made` are the calls that were answered.
    """

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    counts: Counter[str] = field(default_factory=Counter[str])
    made: list[MadeCall] = field(default_factory=list[MadeCall])

    def copy(self) -> World:
        """Return the same world apart from this one."""
        return World(copy.deepcopy(self.state), Counter(self.counts), list(self.made))


class ToolSession(Protocol):
    """The tools in one conversation; `offered` are their definitions, as a chat completions endpoint takes them."""

    @property
    def offered(self) -> Sequence[Mapping[str, Any]]:
        """The definitions of the tools."""
        ...

    @property
    def max_steps(self) -> int:
        """How many times in one turn calls are answered; 0 where nobody answers, so that a call ends the turn."""
        ...

    async def answer(self, call: ToolCall, history: Sequence[AnyMessage], world: World) -> ToolMessage:
        """Answer a call, the last of `history`; what the tool changes, it changes in `world`.

        Raises:
            SuiteFault: nobody answers it, or who should failed.
        """
        ...

    def state(self, world: World) -> dict[str, Any] | None:
        """Return the state of the row as the tools left it, None where that is not known."""
        ...

    async def close(self) -> None:
        """End what was begun for the conversation."""
        ...


class Tools(Protocol):
    """The tools of a target."""

    async def open(self, opening: Opening) -> ToolSession:
        """Begin a conversation.

        Raises:
            Fault: what answers cannot be reached, or the row asks for a tool that is not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """Tools that are only offered: a call of one ends the turn."""

    offered: Sequence[Mapping[str, Any]] = ()
    max_steps: int = 0

    async def open(self, opening: Opening) -> ToolSession:
        """Begin a conversation."""
        return self

    async def answer(self, call: ToolCall, history: Sequence[AnyMessage], world: World) -> ToolMessage:
        """Refuse.

        Raises:
            SuiteFault: always.
        """
        raise unanswered(call.name)

    def state(self, world: World) -> dict[str, Any] | None:
        """Return the state of the row, which nothing changes."""
        return world.state

    async def close(self) -> None:
        """Do nothing."""


def unanswered(name: str) -> SuiteFault:
    """Return the failure of a conversation that cannot go on without the answer to a call."""
    hint = f"give the target handlers: {{{name}: …}}, or the row tool_results: {{{name}: {{result: …}}}}"
    return SuiteFault(f"nobody answers the tool '{name}'; {hint}", kind="unanswered")
