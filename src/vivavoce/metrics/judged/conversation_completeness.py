"""`ConversationCompletenessMetric`: does the user get everything that they wished for?"""

from __future__ import annotations

from typing import ClassVar, Unpack

from vivavoce.metrics.checklist import ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.models.custom import ModelLike


class ConversationCompletenessMetric(ChecklistMetric):
    """Judges, wish by wish, whether the user gets what they ask for; passes from `threshold` (0.7) up.

    What the user never voices is not a wish here; the metric `goal_achievement` judges a goal that is given. A wish
    that nobody answers is not satisfied.

    Known failure: a user who gives up politely states no unmet wish.
    """

    template: ClassVar[str] = "judged/conversation_completeness.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule({("check", "pass"): "act"})
    of_assistant: ClassVar[bool] = False
    nothing: ClassVar[str] = "the user voices no wish that could be satisfied"

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="conversation_completeness",
            description="Does the user get everything that they wished for?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)
