"""Judge a file of conversations and say how many reached their goal, give or take.

Run it with a model of your own: python judge_many.py conversations.jsonl openai:gpt-4.1-mini
"""

from __future__ import annotations

import sys
from pathlib import Path

from vivavoce import RunResult, evaluate


def judge(path: Path, model: str) -> RunResult:
    """Judge every conversation of a file by its own goal."""
    return evaluate(path, ["goal_achievement"], model=model, name="batch")


def main(path: str, model: str) -> None:
    """Print each verdict and the success rate with its 95 % interval."""
    result = judge(Path(path), model)
    for outcome in result.outcomes():
        score = outcome.scores["goal_achievement"]
        verdict = score.raw if score.state == "scored" else score.state
        print(f"{outcome.attempt.key.sample_id}: {verdict}  {score.reason}")
    found = result.summary.grader("goal_achievement")
    if found.pass_rate is None:
        print(f"nothing was scored: {found.errors} errors, {found.skipped} skipped")
    else:
        interval = f"[{found.pass_low:.1%}, {found.pass_high:.1%}]"
        print(f"success rate: {found.pass_rate:.1%} {interval} of {found.scored}, {found.errors} errors")


if __name__ == "__main__":
    main(*sys.argv[1:3])
