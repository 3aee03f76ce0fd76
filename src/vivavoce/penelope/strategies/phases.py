"""`Phased`: a strategy in phases, which share out the turns of a test evenly."""

from __future__ import annotations

from collections.abc import Mapping

from vivavoce.penelope.context import TestState
from vivavoce.penelope.strategies.history import Reaction, reaction
from vivavoce.penelope.strategies.strategy import Move


class Phased:
    """Guides by how far the test is, and by what the target did last.

    A subclass has the guidance of its `phases` by their names, and what to do first `after` the target reacted in some
    way.
    """

    name: str
    adversarial = False
    heeds_refusals = True
    phases: Mapping[str, str]
    after: Mapping[Reaction, str]

    def move(self, state: TestState) -> Move:
        """Respond to the target's reaction, then go on with the phase of this turn."""
        last = reaction(state)
        on_reaction = self.after.get(last, "") if last else ""
        phase = list(self.phases)[_phase(len(state.turns), state.context.max_turns, len(self.phases))]
        return Move(guidance=f"{on_reaction} {self.phases[phase]}".strip(), phase=phase)


def _phase(turns_done: int, turns: int, phases: int) -> int:
    return min(turns_done * phases // max(turns, 1), phases - 1)
