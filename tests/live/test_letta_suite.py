"""The per-turn example of letta-evals, by a suite, against the real Letta Code command line: three turns, one agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import arun_suite

from .endpoint import Endpoint
from .test_letta_code import MODEL, endpoint, home, letta, pytestmark

__all__ = ["endpoint", "pytestmark"]

SUITE = """\
name: multiturn-per-turn-grading
dataset: dataset.jsonl
target:
  kind: letta_code
  backend: local
  command: {command}
  model_handles: ["{model}"]
  timeout: 60
graders:
  correctness: {{kind: tool, function: contains, extractor: last_assistant}}
reward: {{kind: metric, metric_key: correctness}}
gate: {{kind: simple, metric_key: correctness, value: 0.6}}
"""


async def test_three_turns_are_asked_one_by_one_and_graded_one_by_one(endpoint: Endpoint, tmp_path: Path) -> None:
    row = {
        "id": "capitals",
        "input": [f"What is the capital of {country}?" for country in ("France", "Germany", "Spain")],
        "ground_truth": ["Paris", "Berlin", "Lisbon"],
        "extra_vars": {"env": home(tmp_path)},
    }
    await asyncio.to_thread((tmp_path / "dataset.jsonl").write_text, json.dumps(row) + "\n")
    suite = SUITE.format(command=letta(), model=MODEL)
    await asyncio.to_thread((tmp_path / "suite.yaml").write_text, suite)
    result = await arun_suite(tmp_path / "suite.yaml")
    assert result.exit_code == 0
    assert result.summary.grader("reward").mean == pytest.approx(2 / 3)
    with Store.open(settings().store) as store:
        (outcome,) = store.outcomes(result.grading.id)
    turns = outcome.scores["correctness"].turns or []
    assert [(turn.value, turn.ground_truth) for turn in turns] == [(1.0, "Paris"), (1.0, "Berlin"), (0.0, "Lisbon")]
    assert "Madrid" in turns[2].submission
    assert outcome.attempt.trajectory.session_id
    assert [turn.usage is not None for turn in outcome.attempt.trajectory.turns] == [True, True, True]
    last = endpoint.said(-1)
    assert [any(country in said for said in last) for country in ("France", "Germany", "Spain")] == [True] * 3
