"""What happens in a run, as it happens; the terminal, the pages and the store read the same events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from vivavoce.records.run import AttemptKey, Grading, Outcome, Run
from vivavoce.records.trajectory import Turn


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins, or goes on; `planned` attempts are asked for, None for nobody knows, `done` are there already."""

    run: Run
    grading: Grading
    planned: int | None
    done: int


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A conversation begins."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The target has answered, or failed to."""

    key: AttemptKey
    turn: Turn


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """A conversation is over and graded."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Nothing is left to do, or the run was interrupted."""

    run: Run
    grading: Grading


Event = RunStarted | AttemptStarted | TurnEnded | AttemptEnded | RunEnded


class Listener(Protocol):
    """Something that reads events; it may wait, and the run waits with it."""

    async def on(self, event: Event) -> None:
        """Take one event."""
        ...
