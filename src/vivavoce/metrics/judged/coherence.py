"""`ConversationCoherenceMetric`: does what the assistant says hang together?"""

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
    "answers": Wording("Does each reply respond to what the user has just said?"),
    "transitions": Wording("Does it stay on the subject, or say so when it turns to another?"),
    "consistency": Wording("Do all its statements agree with one another?"),
    "clarity": Wording("Is each reply clear and easy to follow?"),
}


class ConversationCoherenceMetric(ChecklistMetric):
    """Judges whether the assistant's part of a conversation hangs together; passes from `threshold` (0.8) up.

    The items are `answers`, `transitions`, `consistency` and `clarity`. 1 or 2 small lapses halve an item; more, or
    one that misleads the user or breaks off the thread, make it 0. A lapse counts under one item.

    Known failure: a conversation that is fluent and wrong hangs together.
    """

    template: ClassVar[str] = "judged/coherence.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a yes says that there is no lapse")

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="coherence",
            description="Does what the assistant says hang together?",
            threshold=0.8,
        )
        super().__init__(config, model, **options)

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the four questions."""
        del metric_input
        return ITEMS


CoherenceMetric = ConversationCoherenceMetric
