"""Judge one conversation, wherever it comes from.

Run it with a model of your own: python judge_one.py openai:gpt-4.1-mini
"""

from __future__ import annotations

import sys

from vivavoce.metrics import GoalAchievementJudge, MetricResult
from vivavoce.models import as_model

CONVERSATION = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi! How can I help?"},
    {"role": "user", "content": "I need insurance info"},
    {"role": "assistant", "content": "We offer auto, home, and life insurance."},
]


def judge(model: str) -> MetricResult:
    """Return the verdict of a model on the conversation."""
    metric = GoalAchievementJudge(as_model(model))
    return metric.evaluate(CONVERSATION, goal="Customer learns about available insurance types")


def main(model: str) -> None:
    """Print the verdict, why, and what it rests on."""
    result = judge(model)
    print(f"{result.score} (passed: {result.passed})")
    print(result.reasoning)
    for evidence in result.evidence:
        print(f"- {evidence.text!r}, {f'turn {evidence.turn}' if evidence.verified else 'not found'}")


if __name__ == "__main__":
    main(sys.argv[1])
