"""`Openings`: fixed first messages, and then another strategy."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.penelope.context import TestState
from vivavoce.penelope.strategies.history import turns_kept
from vivavoce.penelope.strategies.strategy import Move, Strategy, heeds_refusals


class Openings:
    """Sends lines as they are, one a turn, and hands over to `then`, which sees the turns of the lines as well."""

    def __init__(self, lines: Sequence[str], then: Strategy) -> None:
        self.lines = tuple(lines)
        self.then = then
        self.name = then.name
        self.adversarial = then.adversarial
        self.heeds_refusals = heeds_refusals(then)

    def move(self, state: TestState) -> Move:
        """Send the next line, or ask the other strategy."""
        sent = len(turns_kept(state))
        return Move(say=self.lines[sent]) if sent < len(self.lines) else self.then.move(state)
