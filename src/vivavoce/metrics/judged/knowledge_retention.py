"""`KnowledgeRetentionMetric`: does the assistant keep what the user has told it?"""

from __future__ import annotations

from typing import ClassVar, Unpack

from vivavoce.metrics.checklist import ChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.models.custom import ModelLike


class KnowledgeRetentionMetric(ChecklistMetric):
    """Judges, fact by fact, whether the assistant keeps what the user has told it; passes from `threshold` (0.7) up.

    Of the facts that mattered later, the score is the share neither asked for again nor contradicted.

    Known failure: of a conversation that is judged in pieces, a later piece does not know the facts of an earlier one.
    """

    template: ClassVar[str] = "judged/knowledge_retention.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule({("check", "pass"): "conversation"})
    nothing: ClassVar[str] = "the user told no fact that anything later depends on"

    def __init__(self, model: ModelLike | None = None, **options: Unpack[JudgingOptions]) -> None:
        config = MetricConfig(
            class_name=type(self).__name__,
            name="knowledge_retention",
            description="Does the assistant keep what the user has told it?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)
