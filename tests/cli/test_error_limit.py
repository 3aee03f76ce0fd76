"""The error limit of a run: grading its conversations again keeps it, and so does what shows the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Viva

SUITE = """\
name: limited
dataset:
  rows:
    - {id: a, input: a, ground_truth: a}
    - {id: b, input: b, ground_truth: b}
    - {id: x, input: x, ground_truth: x}
target: {kind: function, function: "bot.py:reply", max_retries: 0}
graders: {same: {kind: function, function: exact_match}}
gate: {metric_key: same, value: 0.9}
"""
BOT = "def reply(message):\n    return message if message != 'x' else 1 / 0\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suite.yaml").write_text(SUITE)
    Path("bot.py").write_text(BOT)


def listed(viva: Viva) -> str:
    return json.loads(viva("runs", "--json").stdout.splitlines()[0])["verdict"]


def test_grading_again_keeps_the_limit_of_the_run(viva: Viva) -> None:
    assert viva("run", "suite.yaml", "-q").returncode == 3
    assert viva("grade", "-q").returncode == 3
    assert viva("run", "suite.yaml", "-q", "--max-errors", "1").returncode == 0
    for arguments in (["grade", "-q"], ["grade", "-q", "--suite", "suite.yaml"]):
        again = viva(*arguments)
        assert (again.returncode, "PASS" in again.stdout) == (0, True), again.stdout
        assert "PASS" in viva("show").stdout
        assert listed(viva) == "pass"
    assert viva("grade", "-q", "--max-errors", "0").returncode == 3


def test_a_limit_given_when_a_run_goes_on_is_its_limit_from_then_on(viva: Viva) -> None:
    assert viva("run", "suite.yaml", "-q").returncode == 3
    assert viva("run", "--resume", "latest", "--errors", "-q", "--max-errors", "40%").returncode == 0
    assert viva("grade", "-q").returncode == 0


def test_trials_that_end_early_are_judged_alike_when_they_are_graded_again(viva: Viva) -> None:
    text = SUITE.replace("    - {id: x, input: x, ground_truth: x}\n", "").replace(
        "function: exact_match", "function: contains"
    )
    Path("suite.yaml").write_text(text + "trials: {max: 40, until: decided}\n")
    run = viva("run", "suite.yaml", "-q")
    again = viva("grade", "-q")
    assert (run.returncode, again.returncode) == (0, 0)
    assert reasons(run.stdout) == reasons(again.stdout)
    assert viva("run", "suite.yaml", "-q", "--trials", "2").returncode == 0
    fixed = viva("grade", "-q")
    assert "interval" not in reasons(fixed.stdout)[0]


def reasons(text: str) -> list[str]:
    return [line for line in text.splitlines() if " · " in line]
