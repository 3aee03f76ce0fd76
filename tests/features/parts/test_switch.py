"""Without runs in parts the commands of runs work on, and the options of parts are refused in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """\
name: bot
dataset: talks.jsonl
driver: replay
graders: {polite: {kind: function, function: "polite.py:polite"}}
"""
POLITE = "def polite(sample, submission):\n    return 1.0\n"


def without_parts(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VIVAVOCE_WITHOUT": "parts"}
    command = [sys.executable, "-m", "vivavoce.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(autouse=True)
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    Path("talks.jsonl").write_text(json.dumps({"id": "a", "messages": talk}))
    Path("polite.py").write_text(POLITE)
    Path("suite.yaml").write_text(SUITE)


@pytest.mark.parametrize("command", [("judge", "talks.jsonl", "--metrics", "refusal"), ("run", "suite.yaml")])
def test_only_work_in_parts_is_refused(command: tuple[str, ...]) -> None:
    whole, parts = without_parts(*command, "--quiet"), without_parts(*command, "--quiet", "--parts", "out")
    assert whole.returncode == 0, whole.stderr
    assert (parts.returncode, parts.stderr) == (2, "--parts needs the plugin 'parts', which is switched off\n")
    assert not Path("out").exists()


def test_there_is_no_command_to_merge() -> None:
    done = without_parts("merge", "out")
    assert done.returncode == 2
    assert "no command 'merge'" in done.stderr
