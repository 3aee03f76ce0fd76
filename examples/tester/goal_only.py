"""One test by the autonomous tester, judged by its goal alone.

Run it with a model of your own, which plays the user and judges: python goal_only.py openai:gpt-4.1-mini
"""

from __future__ import annotations

import sys

from bot import reply

from vivavoce.penelope import PenelopeAgent


def main(model: str) -> None:
    """Hold the test, and print what came of it."""
    agent = PenelopeAgent(model)
    result = agent.execute_test(reply, goal="The customer learns the monthly price of two kinds of insurance")
    print(f"Goal achieved: {result.goal_achieved}, after {result.turns_used} turns")
    print(f"Stopped: {result.stop_reason}")
    for finding in result.evaluation["goal_achievement"].findings:
        print(f"- {finding.what}: {finding.verdict}")


if __name__ == "__main__":
    main(sys.argv[1])
