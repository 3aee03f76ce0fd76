"""`StepwiseMetric`: a metric that yields what it waits for, and leaves the waiting to its caller."""

from __future__ import annotations

from abc import abstractmethod

from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.steps import Plan, carry_out
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.pacing.waiting import wait_for


class StepwiseMetric(BaseMultiTurnMetric):
    """A metric that measures a conversation step by step.

    A subclass may define `aevaluate_conversation` instead, which may call the one here; its steps are then carried out
    by itself alone.
    """

    @abstractmethod
    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Yield what has to be asked or waited for; return the result."""

    @property
    def stepwise(self) -> bool:
        """Whether its steps can be carried out by others."""
        return type(self).aevaluate_conversation is StepwiseMetric.aevaluate_conversation

    def visible_steps(self, reading: Reading) -> Plan[MetricResult]:
        """Return its steps, or one call where it has a way of its own."""
        return self.steps_for(reading) if self.stepwise else super().visible_steps(reading)

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation."""
        return wait_for(self.aevaluate_conversation(evaluation_input))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Measure a conversation.

        Raises:
            ModelFault: a judge failed, or answered outside the shape that it was asked for.
        """
        return await carry_out(self.steps_for(Reading(evaluation_input)))
