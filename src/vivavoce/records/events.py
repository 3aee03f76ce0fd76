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
class BatchesAsked:
    """Questions to judges are with batch services, and the run waits; it looks again after `wait` seconds.

    `batches` are what the services call them, `settled` of the `requests` in them have ended, `broken` of these without
    an answer. `since` is when the first was made, in seconds since the epoch; `trouble` is what went wrong last.
    """

    round: int
    batches: tuple[str, ...]
    models: tuple[str, ...]
    requests: int
    settled: int
    broken: int
    since: float
    wait: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Nothing is left to do, or the run was interrupted."""

    run: Run
    grading: Grading


Event = RunStarted | AttemptStarted | TurnEnded | AttemptEnded | BatchesAsked | RunEnded


class Listener(Protocol):
    """Something that reads events; it may wait, and the run waits with it."""

    async def on(self, event: Event) -> None:
        """Take one event."""
        ...
