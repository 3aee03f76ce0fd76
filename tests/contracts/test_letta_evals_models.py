"""What we write for letta-evals, read by its own models and by its own reader.

Needs letta-evals, which is no dependency: `pip install --no-deps letta-evals==0.26.0` beside the packages of the tests.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from vivavoce import run_suite
from vivavoce.report.export import export
from vivavoce.samples.rows import read_samples
from vivavoce.settings import settings
from vivavoce.store.store import Store

models: Any = pytest.importorskip("letta_evals.models")
streaming: Any = pytest.importorskip("letta_evals.streaming")

SUITE = """\
name: capitals
dataset: d.jsonl
target: {kind: function, function: "bot.py:reply"}
graders:
  right: {kind: tool, function: contains}
  broken: {kind: tool, function: "bot.py:broken"}
reward: {kind: metric, metric_key: right}
"""
BOT = """\
from letta_evals.decorators import grader
from letta_evals.models import GradeResult, Sample


def reply(messages):
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Paris"},
        {"role": "assistant", "content": "It is Paris."},
    ]


@grader
def broken(sample: Sample, submission: str) -> GradeResult:
    raise RuntimeError("no")
"""
ROWS = [
    {"id": "one", "input": "The capital of France?", "ground_truth": "Paris"},
    {"id": "turns", "input": ["France?", "Italy?"], "ground_truth": ["Paris", "Rome"]},
    {"id": "half", "input": ["France?", "Which?"], "ground_truth": ["Paris", None]},
    {"id": "without", "input": "And now?"},
]


@pytest.mark.parametrize("trials", [1, 2])
def test_a_run_is_read_by_the_models_of_letta_evals(trials: int, tmp_path: Path) -> None:
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(f"{SUITE}trials: {trials}\n")
    result = run_suite("suite.yaml")
    with Store.open(settings().store) as store:
        export(store, result.run, result.grading, "letta", tmp_path / "out")
    files = sorted(tmp_path.glob("out/**/*.jsonl"))
    rows = [models.SampleResult(**json.loads(line)) for file in files for line in file.read_text().splitlines()]
    assert len(rows) == len(ROWS) * trials
    scores = {row.sample_id: row.grades["right"].score for row in rows if "right" in row.grades}
    assert scores == {"one": 1.0, "turns": 0.5, "half": 1.0}
    kinds = [message.message_type for message in rows[0].trajectory[0]]
    assert kinds == ["user_message", "tool_call_message", "tool_return_message", "assistant_message"]
    assert rows[0].error.category == "grading"
    summary = models.Summary(**json.loads((tmp_path / "out/summary.json").read_text()))
    assert summary.models[0].per_metric == {"right": pytest.approx(2.5 / 3)}
    assert not hasattr(rows[0], "unscored")


def test_its_reader_takes_the_folder_of_a_suite_of_its_own(tmp_path: Path) -> None:
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]))
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE.replace('  broken: {kind: tool, function: "bot.py:broken"}\n', ""))
    result = run_suite("suite.yaml")
    with Store.open(settings().store) as store:
        export(store, result.run, result.grading, "letta", tmp_path / "out")
    suite = tmp_path / "out/suite.json"
    theirs = json.loads(suite.read_text()) | {
        "config": {
            "name": "capitals",
            "dataset": "d.jsonl",
            "target": {"kind": "letta_code", "model_handles": ["bot"]},
            "graders": {"right": {"kind": "tool", "function": "contains"}},
            "reward": {"kind": "metric", "metric_key": "right"},
        }
    }
    suite.write_text(json.dumps(theirs))
    read = asyncio.run(streaming.StreamingReader.to_runner_result(tmp_path / "out"))
    assert [row.reward.score for row in read.runs["bot.reply"].results] == [1.0, 0.5]


def test_what_its_writer_wrote_is_read(tmp_path: Path) -> None:
    call = {"name": "look_up", "arguments": "{}", "tool_call_id": "c1"}
    turn = [
        {"message_type": "user_message", "content": "France?"},
        {"message_type": "tool_call_message", "tool_call": call},
        {"message_type": "tool_return_message", "tool_call_id": "c1", "status": "success", "tool_return": "Paris"},
        {"message_type": "assistant_message", "content": "Paris"},
    ]
    dated = [{"id": f"message-{i}", "date": "2026-01-02T03:04:05Z", **message} for i, message in enumerate(turn)]
    spec = models.SuiteSpec(
        name="s",
        dataset="d.jsonl",
        target={"kind": "letta_code", "model_handles": ["a/b"]},
        graders={"right": {"kind": "tool", "function": "contains"}},
        reward={"kind": "metric", "metric_key": "right"},
    )
    samples = [models.Sample(id=0, input="France?", ground_truth="Paris")]
    row = models.SampleResult(
        sample_id=0,
        agent_id="agent-1",
        trajectory=[dated],
        grades={"right": models.GradeResult(score=1.0)},
        timing=models.Timing(total=1.0, target=1.0),
    )

    async def write() -> None:
        writer = streaming.StreamingWriter(tmp_path / "out", spec, samples, ["a/b"])
        await writer.initialize()
        await writer.append_result(row, "a/b")

    anyio.run(write)
    (sample,) = read_samples(tmp_path / "out/a-b.jsonl")
    assert (sample.id, sample.ground_truth) == ("0", "Paris")
    assert [message.role for message in sample.messages or ()] == ["user", "assistant", "tool", "assistant"]
