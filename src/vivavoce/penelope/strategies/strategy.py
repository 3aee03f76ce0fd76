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
    is stateless.
    """

    say: str | None = None
    guidance: str = ""
    new_session: bool = False
    rollback: bool = False


class Strategy(Protocol):
    """How the tester leads a conversation; it decides from the state of the test alone and has no state of its own.

    An `adversarial` one leads towards what the target should withstand.
    """

    name: str
    adversarial: bool

    def move(self, state: TestState) -> Move:
        """Return what to do in the turn that begins."""
        ...
