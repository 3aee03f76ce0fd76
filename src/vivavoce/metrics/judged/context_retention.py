"""`ContextRetentionMetric`: does the assistant remember, and build on, what was said before?"""

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
    "memory": Wording("Where it needs what the user told earlier, does it know that without asking again?"),
    "consistency": Wording("Where it comes back to what it said or found out earlier, does it keep to that?"),
    "references": Wording("Where the user points back ('it', 'the second'), does it understand what is meant?"),
    "continuity": Wording("Where there are earlier turns, does it build on them?"),
}

OF_SESSIONS: Mapping[str, str] = {
    "sessions": Wording(
        "Where a user comes back in a later session, does it still know what that same user told it in an earlier one, "
        "as it was last changed, without asking again?"
    ),
    "earlier_sessions": Wording("Where it comes back to what it said in an earlier session, does it keep to that?"),
    "users": Wording("Where several users speak, does it keep what one of them told it from the others?"),
}
"""What is asked besides where users come back."""


class ContextRetentionMetric(ChecklistMetric):
    """Judges whether the assistant keeps the context of a conversation; passes from `threshold` (0.8) up.

    The items are `memory`, `consistency`, `references` and `continuity`, each where it applies. 1 or 2 small lapses
    halve an item; more, or one that misleads the user or makes them repeat something, make it 0. A
    lapse counts under one item. One item at 0 is enough to fail. Where users come back in several
    sessions, the items are also `sessions`, `earlier_sessions` and `users`.

    Known failure: a fact that never comes up again is not put to the test.
    """

    template: ClassVar[str] = "judged/context_retention.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a yes says that there is no lapse")

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="context_retention",
            description="Does the assistant remember, and build on, what was said before?",
            threshold=0.8,
        )
        super().__init__(config, model, **options)

    def items(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
        """Return the four questions, plus three if users come back."""
        marks = {mark.number for message in metric_input.messages if (mark := message.mark) is not None}
        return {**ITEMS, **OF_SESSIONS} if len(marks) > 1 else ITEMS
