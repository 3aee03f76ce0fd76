"""`RoleAdherenceMetric`: does the assistant keep to its role?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

from vivavoce.metrics.checklist import TurnChecklistMetric
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import EvidenceRule
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike


class RoleAdherenceMetric(TurnChecklistMetric):
    """Judges, turn by turn, whether the assistant keeps to its role; passes from `threshold` (0.7) up.

    The role is `role`, else `context["role"]` of the conversation, else what its system messages say.

    Known failure: a vague role is kept by every answer.
    """

    template: ClassVar[str] = "judged/role_adherence.jinja"
    evidence_rule: ClassVar[EvidenceRule] = EvidenceRule(absence="a role is kept where nothing leaves it")
    own_variables: ClassVar[frozenset[str]] = TurnChecklistMetric.own_variables | {"role"}
    nothing: ClassVar[str] = "the assistant answers in no turn to which its role would matter"

    def __init__(
        self, model: ModelLike | None = None, *, role: str | None = None, **options: Unpack[JudgingOptions]
    ) -> None:
        self.role = role
        config = MetricConfig(
            class_name=type(self).__name__,
            name="role_adherence",
            description="Does the assistant keep to its role?",
            threshold=0.7,
        )
        super().__init__(config, model, **options)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The role."""
        return {"role": self.role}

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the role, None where the system messages state it."""
        return {**super().variables(metric_input), "role": self._role(metric_input)}

    def inapplicable(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Say why this conversation cannot be judged, such as that no role is known; None when it can."""
        if reason := super().inapplicable(metric_input):
            return reason
        has_system_message = self.shown.policy and any(
            message.role in ("system", "developer") for message in metric_input.messages
        )
        return (
            None
            if has_system_message or self._role(metric_input)
            else "needs a role: role=, context['role'], or a system message"
        )

    def _role(self, metric_input: MultiTurnEvaluationInput) -> object:
        return self.role or (metric_input.context or {}).get("role")
