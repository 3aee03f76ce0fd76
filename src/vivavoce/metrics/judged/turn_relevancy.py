"""`TurnRelevancyMetric`: does the assistant answer, in every turn, what the user said?"""

from __future__ import annotations

from typing import ClassVar, Unpack

from vivavoce.metrics.checklist import TurnChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.models.custom import ModelLike


class TurnRelevancyMetric(TurnChecklistMetric):
    """Judges, turn by turn, whether the assistant answers what the user said; passes from `threshold` (0.7) up.

    Known failure: an answer may be to the point and wrong.
    """

    template: ClassVar[str] = "judged/turn_relevancy.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="the item names the turn, whose whole answer is meant")
    nothing: ClassVar[str] = "the assistant answers in no turn of this conversation"

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="turn_relevancy",
            description="Does the assistant answer, in every turn, what the user said?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)
