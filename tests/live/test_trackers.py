"""Runs logged by the real packages of MLflow and Weights & Biases, in an environment of their own and offline."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.live

PYTHON = Path(__file__).parents[2] / ".venv-trackers" / "bin" / "python"
SUITE = """\
name: shop
dataset:
  rows:
    - {id: hours, input: "When do you open?", ground_truth: nine}
    - {id: refund, input: "I want my money back.", ground_truth: sorry}
targets: [{kind: function, name: bot, function: "bot.py:bot"}]
graders: {said: {kind: function, function: contains}}
"""
RUN = """
from vivavoce import run_suite
from vivavoce.records.label import Label
from vivavoce.store.store import Store
result = run_suite("suite.yaml")
print(*result.publish({tool!r}), sep="\\n")
said = dict(sample_id="refund", target="bot", trial=0, grader="said", author="ida", verdict="unsure", created_at=0.0)
with Store.open(result.place) as store:
    store.labels.set(result.run.id, Label(**said))
print(*result.publish({tool!r}), sep="\\n")
"""
READ = """
import json, mlflow
[run] = mlflow.MlflowClient().search_runs([mlflow.get_experiment_by_name("shop").experiment_id])
tables = [mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/{name}.json") for name in ("samples", "labels")]
print(json.dumps([run.info.status, run.data.params, run.data.metrics, *tables]))
"""


def ask(code: str, folder: Path, **environment: str) -> str:
    """Return what a program says in the environment of the trackers."""
    if not PYTHON.exists():
        pytest.fail("run these tests with: make live")
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), **environment}
    done = subprocess.run(
        [PYTHON, "-c", code], cwd=folder, env=known, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suite.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "bot.py").write_text('def bot(messages):\n    return "We open at nine."\n', "utf-8")
    return tmp_path


def test_mlflow_holds_the_run_once(folder: Path) -> None:
    place = f"sqlite:///{folder}/mlflow.db"
    first, second = ask(RUN.format(tool="mlflow"), folder, MLFLOW_TRACKING_URI=place).splitlines()
    assert "metrics and the samples: run" in first
    assert "already exist" in second
    assert second.endswith(", with 1 label")
    found: list[Any] = json.loads(ask(READ, folder, MLFLOW_TRACKING_URI=place))
    status, params, metrics, table, labels = found
    assert status == "FINISHED"
    assert params["suite"] == "shop"
    assert params["target/bot/function"] == "bot.py:bot"
    assert params["grader/said/fingerprint"]
    assert metrics["said/mean"] == metrics["said/pass_rate"] == 0.5
    assert metrics["said/low"] < 0.5 < metrics["said/high"]
    assert [row[:5] for row in table["data"]] == [[one, "bot", 1, "said", "scored"] for one in ("hours", "refund")]
    assert [row[table["columns"].index("label")] for row in table["data"]] == [None, "unsure"]
    assert labels["data"] == [["refund", "bot", 1, None, "said", "ida", "unsure", None, False]]


def test_wandb_keeps_the_run_offline(folder: Path) -> None:
    first, second = ask(RUN.format(tool="wandb"), folder, WANDB_MODE="offline").splitlines()
    assert first.split(", /")[0] == second.split(", /")[0]
    assert second.endswith(", with 1 label")
    [file, _] = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))
    content = file.read_bytes()
    for said in (b"said/pass_rate", b"dataset_hash", b"samples"):
        assert said in content
    [*tables] = folder.glob("wandb/offline-run-*/files/media/table/samples_*.table.json")
    assert json.loads(tables[0].read_text("utf-8"))["data"][1][:5] == ["refund", "bot", 1, "said", "scored"]
    [labels] = folder.glob("wandb/offline-run-*/files/media/table/labels_*.table.json")
    assert json.loads(labels.read_text("utf-8"))["data"] == [
        ["refund", "bot", 1, None, "said", "ida", "unsure", None, False]
    ]
