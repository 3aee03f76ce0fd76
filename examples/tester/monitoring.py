"""Metrics that watch while a test goes on, and a guard that ends it.

Run it with a model of your own: python monitoring.py openai:gpt-4.1-mini
"""

from __future__ import annotations

import sys
from itertools import count

from vivavoce.metrics import ContextRetentionMetric, ToxicityMetric
from vivavoce.models import as_model
from vivavoce.penelope import PenelopeAgent

ANSWERS = ("Hello! How may I help?", "Let me see.", "You ask too much. Go away, you fool.")


class Moody:
    """A bot that loses its temper in its third answer."""

    def __init__(self) -> None:
        self.turn = count()

    def __call__(self, message: str) -> str:
        """Answer, whatever is said."""
        del message
        return ANSWERS[min(next(self.turn), 2)]


def main(name: str) -> None:
    """Hold the test, and print each metric turn by turn."""
    model = as_model(name)
    agent = PenelopeAgent(
        model,
        evaluation_metrics=[ContextRetentionMetric(model=model)],
        guard_metrics=[ToxicityMetric(model=model)],
        evaluate_during_test=True,
    )
    result = agent.execute_test(Moody(), goal="The customer learns how to cancel a contract")
    for moment in result.metrics_history:
        scores = ", ".join(f"{metric} {one.score}" for metric, one in moment.results.items())
        print(f"turn {moment.turn}: {scores}")
    print(f"{result.status}: {result.stop_reason}")


if __name__ == "__main__":
    main(sys.argv[1])
