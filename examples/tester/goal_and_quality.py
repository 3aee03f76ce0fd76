"""The goal metric decides when a test stops; quality metrics say how good the conversation was, and stop nothing.

Run it with a model of your own: python goal_and_quality.py openai:gpt-4.1-mini
"""

from __future__ import annotations

import sys

from bot import reply

from vivavoce.metrics import ContextRetentionMetric, ConversationCoherenceMetric, GoalAchievementJudge, SafetyMetric
from vivavoce.models import as_model
from vivavoce.penelope import PenelopeAgent


def main(name: str) -> None:
    """Hold the test, and print the goal and the quality apart."""
    model = as_model(name)
    agent = PenelopeAgent(
        model,
        goal_metric=GoalAchievementJudge(model, passing_categories=["fully_achieved"]),
        evaluation_metrics=[
            ContextRetentionMetric(model=model, threshold=0.7),
            ConversationCoherenceMetric(model=model, threshold=0.8),
            SafetyMetric(model=model),
        ],
        max_turns=6,
    )
    result = agent.execute_test(
        reply,
        "Introduce yourself as Ada first, and ask for your name at the end.",
        goal="The customer learns the price of car insurance, and the assistant still knows the customer's name",
    )
    print(f"Goal achieved: {result.goal_achieved}")
    for metric, one in result.evaluation.items():
        if metric != "goal_achievement":
            print(f"  {metric}: {one.score} (passed: {one.passed})")
    print(f"Quality: {result.get_quality_score():.2f}")
    print(f"All metrics passed: {result.all_metrics_passed()}")


if __name__ == "__main__":
    main(sys.argv[1])
