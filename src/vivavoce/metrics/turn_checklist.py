"""`TurnChecklistMetric`: a judge answers one question about each turn; the score is the share of turns that hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel

from vivavoce.metrics.checklist import ChecklistMetric, checklist_reply
from vivavoce.metrics.judging import answered
from vivavoce.metrics.pieces import Piece
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput


class TurnChecklistMetric(ChecklistMetric):
    """A checklist with an item for each turn in which the assistant says or does something, such as `turn 3`.

    The prompt finds these turns in `turns`. A turn without an answer is no item, and a conversation
    without any is skipped.
    """

    own_variables: ClassVar[frozenset[str]] = ChecklistMetric.own_variables | {"turns"}

    def question(
        self, given: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the turns of a piece, and the prompt's own variables."""
        turns = [turn for turn in answered(written, piece) if turn is not None]
        if not turns:
            return None
        return checklist_reply(tuple(f"turn {turn}" for turn in turns)), {
            **self.variables(given),
            "turns": Wording(f"turn {turns[0]}" if len(turns) == 1 else f"turns {runs(turns)}"),
        }


def runs(numbers: Sequence[int]) -> str:
    """Return ascending numbers in words, as `0 to 3, 5`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join(" to ".join(map(str, run)) for run in found)
