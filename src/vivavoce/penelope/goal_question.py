"""`GoalQuestion`: a question about the goal of a test that is answered with yes or no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from pydantic import BaseModel

from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.judging import JudgedMetric, JudgingOptions
from vivavoce.metrics.ledger import tools_visible
from vivavoce.metrics.metric import score_of_silence
from vivavoce.metrics.question import Piece
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike


class GoalQuestion(JudgedMetric):
    """Asks a judge about the goal; silence of the assistant is a no, and nobody is asked.

    A subclass has its `metric_name`, what it is `about`, its template, and the class of an answer. The prompt may use
    `visible`, whether the calls of the assistant are shown.
    """

    metric_name: ClassVar[str]
    about: ClassVar[str]
    own_variables: ClassVar[frozenset[str]] = frozenset(("visible",))
    needs: ClassVar[tuple[str, ...]] = ("goal",)

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name=self.metric_name,
            description=self.about,
            score_type="binary",
        )
        super().__init__(config, model, **options)

    def question(
        self, metric_input: MultiTurnEvaluationInput, written: Transcript, piece: Piece
    ) -> tuple[type[BaseModel], Mapping[str, object]] | None:
        """Return the class of an answer about a piece; None where the assistant says and does nothing at all."""
        del piece
        return (self.reply, {"visible": tools_visible(metric_input, written)}) if written.answered else None

    def unasked(self, metric_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return no: silence reaches no goal, and gives nothing."""
        return score_of_silence(self, metric_input, False)
