"""`TurnEfficiencyMetric`: does the assistant need no more turns than it has to?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from vivavoce.metrics.checklist import ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike

ITEMS: Mapping[str, str] = {
    "directness": Wording("Does it answer or act as soon as it can?"),
    "questions": Wording("Where it asks, does it need the answer, and ask together what belongs together?"),
    "repetition": Wording("Does it say, do and settle each thing only once?"),
    "precision": Wording("Does it get things right before the user has to correct or press it?"),
}


class TurnEfficiencyMetric(ChecklistMetric):
    """Judges whether the assistant wastes no turns; passes from `threshold` (0.7) up.

    The items are `directness`, `questions`, `repetition` and `precision`. One wasted turn of the user halves an item,
    two or more make it 0. A lapse counts under one item.

    Known failure: only turns are looked at; the time that a turn takes is measured by `response_time`.
    """

    template: ClassVar[str] = "judged/turn_efficiency.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a yes says that there is no lapse")

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="turn_efficiency",
            description="Does the assistant need no more turns than it has to?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the four questions."""
        del metric_input
        return ITEMS
