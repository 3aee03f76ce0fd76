"""`Improvise`: the tester leads the conversation as it sees fit."""

from __future__ import annotations

from vivavoce.penelope.context import TestState
from vivavoce.penelope.strategies.strategy import Move


class Improvise:
    """Gives no guidance: the tester goes by its brief alone."""

    name = "improvise"
    adversarial = False

    def move(self, state: TestState) -> Move:
        """Leave it to the tester."""
        del state
        return Move()
