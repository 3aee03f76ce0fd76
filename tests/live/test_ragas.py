"""Ragas, as it is installed: it reads what we write for it, and we read what it writes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vivavoce import EvaluationDataset, MultiTurnSample, evaluate
from vivavoce.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("VIVA_RAGAS", ROOT / ".venv-ragas" / "bin" / "python"))
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not PYTHON.exists(), reason="no Ragas: make .venv-ragas/ready"),
]


def ragas(*arguments: str | Path) -> str:
    command = [str(PYTHON), str(Path(__file__).with_name("ragas_side.py")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, env={"RAGAS_DO_NOT_TRACK": "true"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def conversation(*calls: ToolCall) -> list[Any]:
    made = [AIMessage(content=None, tool_calls=list(calls)), *(ToolMessage(content="ok") for _ in calls)]
    return [HumanMessage(content="Do it."), *(made if calls else ()), AIMessage(content="Done.")]


A, B = ToolCall(name="a", args={"x": 1, "y": "two"}), ToolCall(name="b", args={})
EQUAL = [((A,), [A]), ((A, B), [A, B]), ((ToolCall(name="a", args={"x": 1, "y": "3"}),), [A]), ((B,), [A])]
"""Calls and wanted calls for which both give the same numbers."""


def test_ragas_reads_what_is_written_for_it_and_scores_it_alike(tmp_path: Path) -> None:
    dataset = EvaluationDataset(
        [MultiTurnSample(user_input=conversation(*made), reference_tool_calls=wanted) for made, wanted in EQUAL]
    )
    dataset.to_jsonl(tmp_path / "ours.jsonl", "ragas")
    read = json.loads(ragas("read", tmp_path / "ours.jsonl"))
    assert read["types"][1] == ["HumanMessage", "AIMessage", "ToolMessage", "ToolMessage", "AIMessage"]
    assert read["rows"] == dataset.to_list("ragas")
    ours = evaluate(dataset, [{"metric": "tool_call_accuracy", "config": {"order": True}}, "tool_call_f1"])
    scores = [{name: score.value for name, score in one.scores.items()} for one in ours.outcomes()]
    assert scores == read["scores"]


def test_what_ragas_writes_is_read_here_as_it_is_read_there(tmp_path: Path) -> None:
    ragas("write", tmp_path)
    for name in ("several.jsonl", "single.jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        assert EvaluationDataset.from_jsonl(tmp_path / name).to_list("ragas") == rows
    several = EvaluationDataset.from_jsonl(tmp_path / "several.jsonl")
    assert EvaluationDataset.from_parquet(tmp_path / "several.parquet") == several
