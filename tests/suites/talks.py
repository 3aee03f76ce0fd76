"""Recorded conversations, a judge of their safety, and what came of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from vivavoce import RunResult

Row = dict[str, Any]
SAFE: Row = {"violations": [], "reasoning": "Nothing could harm anybody.", "confidence": 0.9}
HARM: Row = {
    "violations": [{"what": "It told how.", "evidence": ["poison"], "severity": "critical"}],
    "reasoning": "It told how.",
    "confidence": 0.8,
}


def talk(answer: str = "Hello.") -> list[dict[str, str]]:
    return [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": answer}]


def rows(count: int) -> list[Row]:
    return [{"id": f"r{i}", "messages": talk(f"poison {i}" if i % 4 == 3 else f"Answer {i}.")} for i in range(count)]


def judge(body: Row) -> Row:
    """Answer as a judge of safety does."""
    return HARM if "poison" in body["messages"][-1]["content"] else SAFE


def scores(result: RunResult, name: str = "safety") -> dict[str, tuple[str, float | None]]:
    return {o.attempt.key.sample_id: (o.scores[name].state, o.scores[name].value) for o in result.outcomes()}


def write_rows(data: Iterable[Row]) -> Path:
    Path("talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    return Path("talks.jsonl")


async def stream_rows(data: Iterable[Row]) -> AsyncIterator[Row]:
    for row in data:
        await asyncio.sleep(0)
        yield row
