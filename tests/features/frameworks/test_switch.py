"""Without frameworks a function is a target, and an object of a framework is refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BOT = """
class Graph:
    name = "graph"
    def invoke(self, input, config=None): return "Hello."
graph = Graph()
def reply(message): return "Hello."
"""
SUITE = """\
name: bot
dataset: {{rows: [{{id: a, input: [Hi.], ground_truth: Hello}}]}}
target: {{kind: function, function: "bot.py:{function}"}}
graders: {{said: {{kind: function, function: contains}}}}
"""


def run_without_frameworks(function: str) -> subprocess.CompletedProcess[str]:
    Path("suite.yaml").write_text(SUITE.format(function=function))
    environment = {**os.environ, "VIVAVOCE_WITHOUT": "frameworks"}
    command = [sys.executable, "-m", "vivavoce.cli.main", "run", "suite.yaml", "--quiet"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(autouse=True)
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)


def test_a_function_is_a_target_and_an_object_of_a_framework_is_none() -> None:
    done = run_without_frameworks("reply")
    assert done.returncode == 0, done.stderr
    done = run_without_frameworks("graph")
    assert done.returncode == 2
    assert "VIVAVOCE_WITHOUT=frameworks switches off frameworks" in done.stderr
    assert len(done.stderr.splitlines()) == 1
