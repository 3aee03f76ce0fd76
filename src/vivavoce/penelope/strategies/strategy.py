"""The protocol of a strategy: turn by turn, what the tester is to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from vivavoce.penelope.context import TestState


@dataclass(frozen=True, slots=True)
class Move:
    """What the tester does in the turn that begins.

    `say` is sent as it is, and the tester's model is not asked; otherwise `guidance` is what it is told, besides its
    brief. `fresh` begins a new session with the target first; `forget` takes back the last exchange, where the target
    is stateless.
    """

    say: str | None = None
    guidance: str = ""
    fresh: bool = False
    forget: bool = False


class Strategy(Protocol):
    """How the tester leads a conversation; it decides from the state of the test alone and keeps none of its own.

    An `adversarial` one leads towards what the target should withstand.
    """

    name: str
    adversarial: bool

    def move(self, state: TestState) -> Move:
        """Return what to do in the turn that begins."""
        ...
