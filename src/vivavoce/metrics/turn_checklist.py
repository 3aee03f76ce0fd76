"""`TurnChecklistMetric`: a judge answers one question about each turn; the score is the share of turns that hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel

from vivavoce.metrics.checklist import ChecklistMetric, checklist_reply
from vivavoce.metrics.judging import answered
from vivavoce.metrics.pieces import Piece
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.records.counting import turn_label, turn_span


class TurnChecklistMetric(ChecklistMetric):
    """A checklist with an item for each turn in which the assistant says or does something, such as `turn 3`.

    The prompt finds these turns in `turns`. A turn without an answer is not an item, and a conversation
    without any is skipped.
    """

    own_variables: ClassVar[frozenset[str]] = ChecklistMetric.own_variables | {"turns"}

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about the turns of a piece, and the prompt's own variables."""
        turns = [turn for turn in answered(written, piece) if turn is not None]
        if not turns:
            return None
        items = tuple(turn_label(turn) for turn in turns)
        return checklist_reply(items), {**self.variables(metric_input), "turns": Wording(turn_span(turns))}
