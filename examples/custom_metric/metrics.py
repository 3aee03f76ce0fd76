"""Two metrics of your own: a function, and a class with a direction and a threshold.

Use them: viva judge conversations.jsonl --metrics metrics.py:greets,metrics.py:PromiseMetric
"""

from __future__ import annotations

from vivavoce.messages import AIMessage
from vivavoce.metrics import BaseMultiTurnMetric, MetricConfig, MetricResult, MultiTurnEvaluationInput
from vivavoce.metrics.types import ConversationHistory

PROMISES = ("i will", "i'll", "you will")


def greets(conversation: ConversationHistory) -> bool:
    """Say whether the first answer greets."""
    answers = [message.text for message in conversation.messages if isinstance(message, AIMessage)]
    return bool(answers) and answers[0].lower().startswith(("hi", "hello", "good"))


class PromiseMetric(BaseMultiTurnMetric):
    """Counts the answers that promise something, as a share; promises have to be kept by somebody."""

    def __init__(self, *, name: str = "promises", threshold: float = 0.5) -> None:
        super().__init__(
            MetricConfig(
                name=name, description="share of answers that promise", direction="lower_is_better", threshold=threshold
            )
        )

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Return the share of answers with a promise in them."""
        answers = [message.text.lower() for message in evaluation_input.messages if isinstance(message, AIMessage)]
        if not answers:
            return self.skipped("nobody answers")
        share = sum(any(word in answer for word in PROMISES) for answer in answers) / len(answers)
        return MetricResult(score=share, reason=f"{share:.0%} of answers promise")
