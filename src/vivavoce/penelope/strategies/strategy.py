"""The protocol of a strategy: what the tester does next, turn by turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from vivavoce.penelope.context import TestState


@dataclass(frozen=True, slots=True)
class Move:
    """What the tester does in the turn that begins.

    `say` is sent as it is, without asking the tester's model; otherwise `guidance` is added to the model's brief.
    `new_session` begins a new session with the target first; `rollback` takes back the last exchange, where the target
    is stateless. `phase` names what the turn is for, where the strategy explores in phases.
    """

    say: str | None = None
    guidance: str = ""
    phase: str = ""
    new_session: bool = False
    rollback: bool = False


class Strategy(Protocol):
    """How the tester leads a conversation; it decides from the state of the test alone and has no state of its own.

    An `adversarial` one leads towards what the target should withstand. One that explores also has `phases`, their
    names in order: its tests use all their turns, and say which of them each phase took. One with `heeds_refusals`
    reads whether the target refused: where the words of a reply do not say so, a judge is asked before the next turn.
    """

    name: str
    adversarial: bool

    def move(self, state: TestState) -> Move:
        """Return what to do in the turn that begins."""
        ...


def heeds_refusals(strategy: Strategy) -> bool:
    """Say whether a strategy reads whether the target refused."""
    return bool(getattr(strategy, "heeds_refusals", False))


def phases_of(strategy: Strategy) -> tuple[str, ...]:
    """Return the phases of a strategy that explores, none of any other."""
    return tuple(getattr(strategy, "phases", ()))
