"""`ConversationCoherenceMetric`: does what the assistant says hang together?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from vivavoce.metrics.checklist import ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike

ITEMS: Mapping[str, str] = {
    "progression": Wording("Does what it says follow from what was said and done just before?"),
    "transitions": Wording("Does it change the subject only when the user does, or after saying so?"),
    "answers": Wording("Does it answer, each time, the question that was asked?"),
    "clarity": Wording("Can the whole be followed, without contradictions or leaps?"),
}


class ConversationCoherenceMetric(ChecklistMetric):
    """Judges whether the assistant's part of a conversation hangs together; passes from `threshold`, 0.8, on.

    Known failure: a conversation that is fluent and wrong hangs together.
    """

    template: ClassVar[str] = "judged/coherence.jinja"

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
