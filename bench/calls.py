"""How many Python calls one more judged and stored conversation takes: a figure that does not change with the load."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import count as count_from
from types import FrameType
from typing import Any
from unittest.mock import patch

from vivavoce import evaluate
from vivavoce.metrics import GoalAchievementJudge
from vivavoce.models.openai import OpenAIModel
from vivavoce.store.database import group_commit
from vivavoce.testing import LoopbackServer
from vivavoce.wire.http import Limits

FEW, MANY = 40, 120
ANSWER = {
    "criteria": [
        {"outcome": "the user learns when the order comes", "kind": "fact", "evidence": ["on Friday"], "met": True}
    ],
    "breaches": [],
    "reasoning": "The assistant says when it comes.",
    "confidence": 0.9,
}


def conversations(count: int) -> Iterator[dict[str, Any]]:
    """Yield conversations of three turns, each a little different."""
    for i in range(count):
        turns = [(f"Hello, I am customer {i}.", "Good morning."), (f"My order is {i}.", "Thank you, I see it.")]
        turns.append(("When does it come?", f"Order {i} comes on Friday."))
        messages = [
            {"role": role, "content": text}
            for turn in turns
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        yield {"id": f"c{i}", "goal": "The user learns when the order comes", "messages": messages}


def count_calls(number: int, address: str) -> int:
    """Return the calls of Python functions in all threads of an evaluation, except that of the server."""
    calls = count_from()  # safe for use from any thread

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            next(calls)

    judge = OpenAIModel("judge", base_url=address, api_key="sk-x", limits=Limits(concurrency=16))
    rows = list(conversations(number))
    full = patch.object(group_commit, "WINDOW", 60.0)  # else the load decides how many are committed together
    with tempfile.TemporaryDirectory() as folder, full:
        sys.setprofile(note)
        threading.setprofile(note)
        result = evaluate(rows, [GoalAchievementJudge(judge)], max_concurrent=16, store=f"{folder}/store.db")
        threading.setprofile(None)
        sys.setprofile(None)
    (goal,) = result.summary.graders
    if (goal.scored, goal.mean) != (number, 1.0):
        sys.exit(f"{goal.scored} of {number} conversations were judged; the mean is {goal.mean}")
    return next(calls)


def main() -> None:
    """Print the calls for one more conversation."""
    with LoopbackServer(lambda _: ANSWER) as server:
        count_calls(FEW, server.base_url)  # whatever is loaded once is loaded now
        few, many = (count_calls(number, server.base_url) for number in (FEW, MANY))
    print(
        f"Python calls a judged conversation {(many - few) / (MANY - FEW):.0f} (asked: ≤ 650; the bare loop makes 218)"
    )


if __name__ == "__main__":
    main()
