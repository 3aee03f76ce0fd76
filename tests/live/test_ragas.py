"""Ragas, as it is installed: it reads what we write for it, and we read what it writes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from vivavoce import EvaluationDataset, MultiTurnSample, evaluate
from vivavoce.conversations.format import Loss, format_named
from vivavoce.features.formats.conversion import How, convert
from vivavoce.features.formats.ragas import FORMAT
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


def drawn(random: Random) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return wanted calls, each of a tool of its own, and what was made: some arguments lack or are other ones."""
    names = random.sample("abcd", random.randint(1, 4))
    wanted = [{key: random.choice("xyz") for key in random.sample("pqr", 2)} for _ in names]
    made = [{key: random.choice((old, "z")) for key, old in args.items() if random.random() < 0.8} for args in wanted]
    calls = [
        [ToolCall(name=name, args=args) for name, args in zip(names, each, strict=True)] for each in (wanted, made)
    ]
    return calls[0], calls[1]


A, B = ToolCall(name="a", args={"x": 1, "y": "two"}), ToolCall(name="b", args={})
EQUAL = [([A], [A]), ([A, B], [A, B]), ([A], [ToolCall(name="a", args={"x": 1, "y": "3"})]), ([A], [B])]
"""Wanted calls and those made, for which both give the same numbers."""


def test_ragas_reads_what_is_written_for_it_and_scores_it_alike(tmp_path: Path) -> None:
    random = Random(1)
    cases = [*EQUAL, *(drawn(random) for _ in range(300))]
    dataset = EvaluationDataset(
        [MultiTurnSample(user_input=conversation(*made), reference_tool_calls=wanted) for wanted, made in cases]
    )
    dataset.to_jsonl(tmp_path / "ours.jsonl", "ragas")
    read = json.loads(ragas("read", tmp_path / "ours.jsonl"))
    assert read["types"][1] == ["HumanMessage", "AIMessage", "ToolMessage", "ToolMessage", "AIMessage"]
    assert read["rows"] == dataset.to_list("ragas")
    ours = evaluate(dataset, [{"metric": "tool_call_accuracy", "config": {"order": True}}, "tool_call_f1"])
    scores = [{name: score.value for name, score in one.scores.items()} for one in ours.outcomes()]
    assert len(scores) == len(read["scores"]) == len(cases)
    for score, theirs in zip(scores, read["scores"], strict=True):
        assert score == pytest.approx(theirs, abs=1e-4)  # Ragas rounds F1


def test_what_ragas_writes_is_read_here_as_it_is_read_there(tmp_path: Path) -> None:
    ragas("write", tmp_path)
    for name in ("several.jsonl", "single.jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        assert EvaluationDataset.from_jsonl(tmp_path / name).to_list("ragas") == rows
    several = EvaluationDataset.from_jsonl(tmp_path / "several.jsonl")
    assert EvaluationDataset.from_parquet(tmp_path / "several.parquet") == several


def test_what_is_converted_for_ragas_is_read_by_it_and_comes_back(tmp_path: Path) -> None:
    ragas("write", tmp_path)
    for name in ("several.jsonl", "single.jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        kept, loss = [row for row in rows if name == "several.jsonl" or "response" in row], Loss()
        convert(tmp_path / name, tmp_path / "ours.jsonl", format_named("vivavoce"), loss, How(source=FORMAT))
        convert(tmp_path / "ours.jsonl", tmp_path / f"again-{name}", FORMAT, loss)
        again = [json.loads(line) for line in (tmp_path / f"again-{name}").read_text(encoding="utf-8").splitlines()]
        theirs = [{key: value for key, value in row.items() if key not in ("id", "metadata")} for row in again]
        assert theirs == kept
        (tmp_path / "ours.jsonl").unlink()
    read = json.loads(ragas("read", tmp_path / "again-several.jsonl"))
    print("ragas", read["version"])
    assert [types[0] for types in read["types"]] == ["HumanMessage", "HumanMessage"]
    assert read["rows"] == [json.loads(line) for line in (tmp_path / "several.jsonl").read_text().splitlines()]
