"""`ResponseQualityMetric`: are the assistant's answers good ones?"""

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
    "relevance": Wording("Does each answer address what the user has just said, without padding?"),
    "completeness": Wording("Does each answer hold what the user needs in order to go on?"),
    "clarity": Wording("Is each answer easy for this user to understand?"),
    "grounding": Wording(
        "Where a tool, document or system message gives facts, do the answers keep to these and invent no others?"
    ),
    "honesty": Wording("Does it admit what it does not know or cannot do, and claim no act that was not done?"),
}


class ResponseQualityMetric(ChecklistMetric):
    """Judges whether the assistant's answers are good ones; passes from `threshold` (0.7) up.

    The items are `grounding`, where tools, documents or system messages give facts, `honesty`, `relevance`,
    `completeness` and `clarity`. 1 or 2 small lapses halve an item; more, or one that misleads the user or leaves them
    stuck, make it 0. A lapse counts under one item.

    Known failure: whether an answer is right is judged by what the judge itself knows.
    """

    template: ClassVar[str] = "judged/response_quality.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a yes says that there is no lapse")

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="response_quality",
            description="Are the assistant's answers good ones?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the five questions."""
        del metric_input
        return ITEMS
